//! Global variables and the layout of their types: which part of one an address is, as the source writes it.

/// The number of a type in [`Layouts`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TypeId(pub usize);

#[derive(Debug)]
pub struct Type {
    pub size: u64,
    pub shape: Shape,
}

#[derive(Debug)]
pub enum Shape {
    /// How its value is read, as the pass writes it (docs/hook-abi.md); empty if that is not known.
    Scalar(String),
    /// Elements, and their numbers in each dimension.
    Array(TypeId, Vec<u64>),
    /// A struct, class or union.
    Members(Vec<Member>),
}

#[derive(Debug)]
pub struct Member {
    /// Empty for a base class or an anonymous member.
    pub name: String,
    pub offset: u64,
    pub ty: TypeId,
}

#[derive(Debug)]
pub struct Variable {
    pub address: u64,
    pub name: String,
    pub ty: TypeId,
}

#[derive(Default, Debug)]
pub struct Layouts {
    pub types: Vec<Type>,
    /// Sorted by address.
    pub variables: Vec<Variable>,
}

/// A variable, or part of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// `accounts[2].balance`
    pub name: String,
    /// As in [`Shape::Scalar`].
    pub code: String,
}

/// Types that contain themselves are damaged.
const MAX_DEPTH: usize = 32;

impl Layouts {
    fn ty(&self, id: TypeId) -> Option<&Type> {
        self.types.get(id.0)
    }

    /// The smallest part with a name of its own that contains so many bytes at an address.
    pub fn part_at(&self, address: u64, len: u64) -> Option<Part> {
        let after = self.variables.partition_point(|v| v.address <= address);
        let variable = self.variables[..after].last()?;
        let offset = address - variable.address;
        if offset >= self.ty(variable.ty)?.size {
            return None;
        }
        let mut name = variable.name.clone();
        let code = self.descend(variable.ty, offset, len, &mut name, 0);
        Some(Part { name, code })
    }

    /// Adds to the name, and returns how the value is read.
    fn descend(&self, id: TypeId, offset: u64, len: u64, name: &mut String, depth: usize) -> String {
        let Some(ty) = self.ty(id).filter(|_| depth < MAX_DEPTH) else { return String::new() };
        let holds = |id: TypeId, inner: u64| self.ty(id).is_some_and(|t| inner < t.size && len <= t.size - inner);
        match &ty.shape {
            Shape::Scalar(code) => code.clone(),
            Shape::Array(element, counts) => {
                let size = self.ty(*element).map_or(0, |t| t.size);
                if size == 0 || !holds(*element, offset % size) {
                    return String::new();
                }
                name.push_str(&indices(offset / size, counts));
                self.descend(*element, offset % size, len, name, depth + 1)
            }
            Shape::Members(members) => {
                let here = |m: &&Member| offset >= m.offset && holds(m.ty, offset - m.offset);
                let Some(member) = members.iter().find(here) else { return String::new() };
                // What is reserved for the implementation leaves no trace: `std::atomic<int> ready` is `ready`.
                if !member.name.is_empty() && !member.name.starts_with('_') {
                    name.push('.');
                    name.push_str(&member.name);
                }
                self.descend(member.ty, offset - member.offset, len, name, depth + 1)
            }
        }
    }
}

/// `[1][2]` for the element of that number.
fn indices(mut element: u64, counts: &[u64]) -> String {
    let mut all = Vec::new();
    for (i, count) in counts.iter().enumerate().rev() {
        // The first dimension takes what is left.
        let index = if i == 0 || *count == 0 { element } else { element % count };
        all.push(format!("[{index}]"));
        element = if *count == 0 { 0 } else { element / count };
    }
    all.reverse();
    all.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> Layouts {
        let member = |name: &str, offset, ty| Member { name: name.into(), offset, ty: TypeId(ty) };
        let types = vec![
            Type { size: 4, shape: Shape::Scalar("s4".into()) },
            Type { size: 8, shape: Shape::Scalar("p8".into()) },
            Type { size: 16, shape: Shape::Members(vec![member("id", 0, 0), member("_M_next", 8, 1)]) },
            Type { size: 48, shape: Shape::Array(TypeId(2), vec![3]) },
            Type { size: 24, shape: Shape::Array(TypeId(0), vec![2, 3]) },
            Type { size: 64, shape: Shape::Members(vec![member("", 0, 3), member("grid", 48, 0)]) },
        ];
        let variable = |address, name: &str, ty| Variable { address, name: name.into(), ty: TypeId(ty) };
        let variables = vec![variable(0x100, "a", 3), variable(0x200, "g", 4), variable(0x300, "s", 5)];
        Layouts { types, variables }
    }

    fn part(address: u64, len: u64) -> Option<(String, String)> {
        layouts().part_at(address, len).map(|p| (p.name, p.code))
    }

    fn named(name: &str, code: &str) -> Option<(String, String)> {
        Some((name.into(), code.into()))
    }

    #[test]
    fn parts_have_names() {
        assert_eq!(part(0x100, 4), named("a[0].id", "s4"));
        assert_eq!(part(0x110, 4), named("a[1].id", "s4"));
        assert_eq!(part(0x118, 8), named("a[1]", "p8"));
        assert_eq!(part(0x200 + 20, 4), named("g[1][2]", "s4"));
        assert_eq!(part(0x300 + 16, 4), named("s[1].id", "s4"));
        assert_eq!(part(0x300 + 48, 4), named("s.grid", "s4"));
    }

    #[test]
    fn what_is_larger_than_a_part_is_the_whole() {
        assert_eq!(part(0x100, 16), named("a[0]", ""));
        assert_eq!(part(0x100, 48), named("a", ""));
    }

    #[test]
    fn outside_there_is_nothing() {
        assert_eq!(part(0x130, 4), None);
        assert_eq!(part(0xff, 1), None);
    }

    #[test]
    fn a_type_inside_of_itself_ends() {
        let inside = Member { name: "x".into(), offset: 0, ty: TypeId(0) };
        let types = vec![Type { size: 8, shape: Shape::Members(vec![inside]) }];
        let variables = vec![Variable { address: 0, name: "v".into(), ty: TypeId(0) }];
        assert!(Layouts { types, variables }.part_at(0, 1).is_some());
    }
}
