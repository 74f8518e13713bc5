//! The expression an address came from, as the source would write it: `counter`, `table[3]`, `node->next`.
//!
//! Best effort: debug info gives the variable and the layout of its type, the address computation the way into it.
//! Indices that are not constant are written `[i]`; what cannot be named has no name.

use crate::ir::{Kind, Module, Opcode, Value};
use crate::shims::{Node, pointer_base};

/// Pointers followed before giving up: longer chains help no reader.
const MAX_DEPTH: u32 = 4;

/// A piece of memory with a name.
struct Place {
    text: String,
    ty: Option<Node>,
    /// `text` is the pointer to it rather than the place itself.
    behind_pointer: bool,
}

/// The name of what is at `address`.
pub fn name_of(module: Module, address: Value) -> Option<String> {
    place_at(module, address, 0).map(Place::finish)
}

fn place_at(module: Module, address: Value, depth: u32) -> Option<Place> {
    if depth > MAX_DEPTH || address.ty().is_vector() {
        return None;
    }
    let found = pointer_base(module, address);
    let start = base_place(module, found.base, depth)?;
    Some(start.walk(found.offset, found.variable))
}

/// The place that an address computation starts from.
fn base_place(module: Module, base: Value, depth: u32) -> Option<Place> {
    match base.kind() {
        Kind::GlobalVariable => Some(global_place(base)),
        Kind::Instruction(Opcode::LLVMAlloca) => variable_place(Node::variable_at(base)?, false),
        _ => pointer_place(module, base, depth),
    }
}

fn global_place(global: Value) -> Place {
    let variable = Node::of_global(global);
    let text = variable.and_then(Node::variable_name).unwrap_or_else(|| global.name());
    Place { text, ty: variable.and_then(Node::variable_type), behind_pointer: false }
}

fn variable_place(variable: Node, behind_pointer: bool) -> Option<Place> {
    let declared = variable.variable_type();
    let ty = if behind_pointer { declared.and_then(Node::pointee) } else { declared };
    Some(Place { text: variable.variable_name()?, ty, behind_pointer })
}

/// What a pointer held in a variable, or loaded from a place that has a name, points to.
fn pointer_place(module: Module, pointer: Value, depth: u32) -> Option<Place> {
    if matches!(pointer.kind(), Kind::Argument | Kind::Instruction(_))
        && let Some(variable) = Node::variable_of(pointer)
    {
        return variable_place(variable, true);
    }
    if !pointer.is(Opcode::LLVMLoad) {
        return None;
    }
    let holder = place_at(module, pointer.operand(0), depth + 1)?;
    let ty = holder.ty.and_then(Node::pointee);
    Some(Place { text: holder.finish(), ty, behind_pointer: true })
}

impl Place {
    /// Goes `offset` bytes into the place, by members and elements of its type.
    fn walk(mut self, offset: i64, variable: bool) -> Place {
        let mut bit = offset.wrapping_mul(8);
        let whole = self.ty.map_or(0, Node::bits);
        if self.behind_pointer && whole != 0 && (variable || bit < 0 || bit as u64 >= whole) {
            let index = bit.div_euclid(whole as i64);
            bit = bit.rem_euclid(whole as i64);
            self = self.index(index, variable && self_is_scalar(whole));
        }
        if bit < 0 {
            return self;
        }
        self.descend(bit as u64, variable)
    }

    fn descend(mut self, mut bit: u64, variable: bool) -> Place {
        while let Some(ty) = self.ty {
            if let Some(element) = ty.element() {
                let size = element.bits();
                if size == 0 {
                    break;
                }
                let row = ty.array_row();
                let index = (bit / size / row) as i64;
                self = self.index(index, variable);
                if row > 1 {
                    break;
                }
                self.ty = Some(element);
                bit %= size;
            } else if let Some(member) = ty.member(bit) {
                if let Some(name) = member.name {
                    self = self.member(&name);
                }
                self.ty = Some(member.ty);
                bit -= member.first_bit;
            } else {
                break;
            }
        }
        self
    }

    fn index(self, index: i64, variable: bool) -> Place {
        let text = if variable { format!("{}[i]", self.text) } else { format!("{}[{index}]", self.text) };
        Place { text, ty: self.ty, behind_pointer: false }
    }

    fn member(self, name: &str) -> Place {
        let dot = if self.behind_pointer { "->" } else { "." };
        Place { text: format!("{}{dot}{name}", self.text), ty: self.ty, behind_pointer: false }
    }

    fn finish(self) -> String {
        if self.behind_pointer { format!("*{}", self.text) } else { self.text }
    }
}

/// Behind a pointer an unknown step is one over whole objects.
fn self_is_scalar(bits: u64) -> bool {
    bits != 0
}
