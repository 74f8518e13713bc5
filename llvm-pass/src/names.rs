//! The expression an address came from, as the source would write it: `counter`, `table[3]`, `node->next`.
//!
//! Best effort: debug info gives the variable and the layout of its type, the address computation the way into it.
//! Indices that are not constant are written `[i]`; what cannot be named has no name. Members whose names are reserved
//! for the implementation are left out: `std::atomic<int> ready` is `ready`, not `ready._M_i`.

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
    /// `text` is the name of its type: no variable is known.
    is_type: bool,
}

/// What is at an address, as reports show it.
pub struct Named {
    pub text: String,
    /// How its value is read (docs/hook-abi.md); empty if that is not known.
    pub code: String,
}

/// The name of what is at `address`; `whole` bytes of it are accessed at once, if that is more than a scalar.
pub fn name_of(module: Module, address: Value, whole: u64) -> Option<Named> {
    let place = place_at(module, address, whole, 0)?;
    let code = place.ty.map(code).unwrap_or_default();
    Some(Named { text: place.finish(), code })
}

/// More names than this are no help, and take up room.
const MAX_ENUMERATORS: usize = 24;

fn code(ty: Node) -> String {
    let Some(category) = ty.category() else { return String::new() };
    let size = ty.bits() / 8;
    let names = if category == 'e' { ty.enumerators() } else { Vec::new() };
    if names.is_empty() || names.len() > MAX_ENUMERATORS {
        return format!("{}{size}", if category == 'e' { 's' } else { category });
    }
    let each: Vec<String> = names.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("e{size}:{}", each.join(","))
}

fn place_at(module: Module, address: Value, whole: u64, depth: u32) -> Option<Place> {
    if depth > MAX_DEPTH || address.ty().is_vector() {
        return None;
    }
    let mut found = pointer_base(module, address);
    if let Some(variable) = thread_local_variable(found.base) {
        found.base = variable;
    }
    let start = base_place(module, found.base, depth)?;
    Some(start.walk(found.offset, found.variable, whole.saturating_mul(8)))
}

/// The variable whose address in the running thread this is.
fn thread_local_variable(base: Value) -> Option<Value> {
    let callee = base.is(Opcode::LLVMCall).then(|| base.called_function()).flatten()?;
    callee.name().starts_with("llvm.threadlocal.address").then(|| base.operand(0))
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
    Place { text, ty: variable.and_then(Node::variable_type), behind_pointer: false, is_type: false }
}

fn variable_place(variable: Node, behind_pointer: bool) -> Option<Place> {
    let declared = variable.variable_type();
    let ty = if behind_pointer { declared.and_then(Node::pointee) } else { declared };
    Some(Place { text: variable.variable_name()?, ty, behind_pointer, is_type: false })
}

/// What a pointer held in a variable, or loaded from a place that has a name, points to.
fn pointer_place(module: Module, pointer: Value, depth: u32) -> Option<Place> {
    if matches!(pointer.kind(), Kind::Argument | Kind::Instruction(_))
        && let Some(variable) = Node::variable_of(pointer)
    {
        return variable_place(variable, true);
    }
    if pointer.is(Opcode::LLVMCall) || pointer.is(Opcode::LLVMInvoke) {
        return returned_place(pointer);
    }
    if !pointer.is(Opcode::LLVMLoad) {
        return None;
    }
    let holder = place_at(module, pointer.operand(0), 0, depth + 1)?;
    let ty = holder.ty.and_then(Node::pointee);
    Some(Place { is_type: false, text: holder.finish(), ty, behind_pointer: true })
}

/// What a pointer or reference that a function returned refers to is called by its class: `Device::mode`.
fn returned_place(call: Value) -> Option<Place> {
    let ty = Node::return_type(call.called_function()?)?.pointee()?;
    let text = ty.scope_name().filter(|name| !name.starts_with('_') && ty.category().is_none())?;
    Some(Place { text, ty: Some(ty), behind_pointer: false, is_type: true })
}

impl Place {
    /// Goes `offset` bytes into the place, by members and elements of its type.
    fn walk(mut self, offset: i64, variable: bool, whole: u64) -> Place {
        let mut bit = offset.wrapping_mul(8);
        let size = self.ty.map_or(0, Node::bits) as i64;
        let steps_over_objects = size != 0 && (variable || bit < 0 || bit >= size);
        if self.behind_pointer && steps_over_objects {
            self = self.index(bit.div_euclid(size), variable);
            bit = bit.rem_euclid(size);
        }
        if bit < 0 { self } else { self.descend(bit as u64, variable, whole) }
    }

    /// Down to the smallest part that has a name of its own and contains all that is accessed.
    fn descend(mut self, mut bit: u64, variable: bool, whole: u64) -> Place {
        while let Some(ty) = self.ty.filter(|ty| whole == 0 || bit != 0 || ty.bits() > whole) {
            if let Some(element) = ty.element() {
                let (size, row) = (element.bits(), ty.array_row());
                if size == 0 {
                    break;
                }
                self = self.index((bit / size / row) as i64, variable);
                if row > 1 {
                    break;
                }
                self.ty = Some(element);
                bit %= size;
            } else if let Some(member) = ty.member(bit) {
                self = self.member(member.name.as_deref());
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
        Place { text, behind_pointer: false, ..self }
    }

    /// Base classes, anonymous and reserved members leave no trace.
    fn member(self, name: Option<&str>) -> Place {
        let Some(name) = name.filter(|n| !n.starts_with('_')) else { return self };
        let joint = match (self.is_type, self.behind_pointer) {
            (true, _) => "::",
            (false, true) => "->",
            (false, false) => ".",
        };
        Place { text: format!("{}{joint}{name}", self.text), ty: self.ty, behind_pointer: false, is_type: false }
    }

    fn finish(self) -> String {
        if self.behind_pointer { format!("*{}", self.text) } else { self.text }
    }
}
