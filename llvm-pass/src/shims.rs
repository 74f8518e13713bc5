//! The C++ side's questions and edits (`cpp/shims.cpp`, `cpp/debug_info.cpp`) as safe functions.

use inkwell::llvm_sys::prelude::*;

use crate::ir::{Block, Module, Type, Value, bytes_to_string, llvm};

#[repr(C)]
#[derive(Clone, Copy)]
struct Text {
    data: *const u8,
    len: usize,
}

impl Text {
    const EMPTY: Text = Text { data: std::ptr::null(), len: 0 };

    fn owned(self) -> Option<String> {
        Some(bytes_to_string(self.data, self.len)).filter(|s| !s.is_empty())
    }
}

unsafe extern "C" {
    fn sd_does_not_capture(call: LLVMValueRef, argument: u32) -> bool;
    fn sd_drop_loop_mustprogress(terminator: LLVMValueRef);
    fn sd_set_harmless(call: LLVMValueRef);
    fn sd_set_pure(call: LLVMValueRef);
    fn sd_first_insertion_point(block: LLVMBasicBlockRef) -> LLVMValueRef;
    fn sd_split_normal_edge(invoke: LLVMValueRef) -> LLVMBasicBlockRef;
    fn sd_split_before(instruction: LLVMValueRef) -> LLVMBasicBlockRef;
    fn sd_redirect(branch: LLVMValueRef, successor: u32, target: LLVMBasicBlockRef);
    fn sd_append_to_used(module: LLVMModuleRef, global: LLVMValueRef);
    fn sd_append_to_compiler_used(module: LLVMModuleRef, globals: *const LLVMValueRef, count: usize);
    fn sd_append_to_constructors(module: LLVMModuleRef, function: LLVMValueRef, priority: i32);
    fn sd_pointer_base(m: LLVMModuleRef, pointer: LLVMValueRef, offset: &mut i64, variable: &mut bool) -> LLVMValueRef;
    fn sd_is_constructor(function: LLVMValueRef) -> bool;
    fn sd_has_fixed_size(module: LLVMModuleRef, ty: LLVMTypeRef) -> bool;
    fn sd_constant_word(constant: LLVMValueRef, word: u32, bits: &mut u64) -> u32;
    fn sd_constant_data(constant: LLVMValueRef, len: &mut usize) -> *const u8;
    fn sd_scope_subprogram(scope: LLVMMetadataRef) -> LLVMMetadataRef;
    fn sd_scope_parent(scope: LLVMMetadataRef) -> LLVMMetadataRef;
    fn sd_scope_name(scope: LLVMMetadataRef) -> Text;
    fn sd_linkage_name(subprogram: LLVMMetadataRef) -> Text;
    fn sd_global_variable(global: LLVMValueRef) -> LLVMMetadataRef;
    fn sd_variable_at(address: LLVMValueRef) -> LLVMMetadataRef;
    fn sd_variable_of(value: LLVMValueRef) -> LLVMMetadataRef;
    fn sd_variable_name(variable: LLVMMetadataRef) -> Text;
    fn sd_variable_type(variable: LLVMMetadataRef) -> LLVMMetadataRef;
    fn sd_type_pointee(ty: LLVMMetadataRef) -> LLVMMetadataRef;
    fn sd_type_element(ty: LLVMMetadataRef) -> LLVMMetadataRef;
    fn sd_type_bits(ty: LLVMMetadataRef) -> u64;
    fn sd_array_row(ty: LLVMMetadataRef) -> u64;
    fn sd_return_type(function: LLVMValueRef) -> LLVMMetadataRef;
    fn sd_type_category(ty: LLVMMetadataRef) -> u8;
    fn sd_enumerator(ty: LLVMMetadataRef, index: u32, value: &mut i64) -> Text;
    fn sd_type_member(ty: LLVMMetadataRef, bit: u64, name: &mut Text, begin: &mut u64) -> LLVMMetadataRef;
}

/// A node of debug info.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Node(pub LLVMMetadataRef);

pub fn node(raw: LLVMMetadataRef) -> Option<Node> {
    (!raw.is_null()).then_some(Node(raw))
}

pub fn does_not_capture(call: Value, argument: u32) -> bool {
    llvm!(sd_does_not_capture(call.0, argument))
}

pub fn drop_loop_mustprogress(terminator: Value) {
    llvm!(sd_drop_loop_mustprogress(terminator.0));
}

/// The call always comes back and touches no memory of the program.
pub fn set_harmless(call: Value) {
    llvm!(sd_set_harmless(call.0));
}

/// The call's result follows from its arguments alone.
pub fn set_pure(call: Value) {
    llvm!(sd_set_pure(call.0));
}

/// None for a block that can only hold phis and an exception switch.
pub fn first_insertion_point(block: Block) -> Option<Value> {
    let raw = llvm!(sd_first_insertion_point(block.0));
    (!raw.is_null()).then_some(Value(raw))
}

/// A block that is reached only when the invoke has returned; made if there is none.
pub fn split_normal_edge(invoke: Value) -> Block {
    Block(llvm!(sd_split_normal_edge(invoke.0)))
}

/// Makes a block of its own of what begins with an instruction.
pub fn split_before(instruction: Value) -> Block {
    Block(llvm!(sd_split_before(instruction.0)))
}

/// Has a branch go elsewhere. Where it went before phis lose the value from there.
pub fn redirect(branch: Value, successor: u32, target: Block) {
    llvm!(sd_redirect(branch.0, successor, target.0));
}

pub fn append_to_used(module: Module, global: Value) {
    llvm!(sd_append_to_used(module.0, global.0));
}

/// Keeps the optimiser from removing or splitting these variables.
pub fn append_to_compiler_used(module: Module, globals: &[Value]) {
    let raw: Vec<_> = globals.iter().map(|g| g.0).collect();
    llvm!(sd_append_to_compiler_used(module.0, raw.as_ptr(), raw.len()));
}

pub fn append_to_constructors(module: Module, function: Value, priority: i32) {
    llvm!(sd_append_to_constructors(module.0, function.0, priority));
}

/// An address taken apart.
pub struct PointerBase {
    pub base: Value,
    /// Sum of the constant steps.
    pub offset: i64,
    /// Whether there were steps that are not constant.
    pub variable: bool,
}

pub fn pointer_base(module: Module, pointer: Value) -> PointerBase {
    let (mut offset, mut variable) = (0, false);
    let base = Value(llvm!(sd_pointer_base(module.0, pointer.0, &mut offset, &mut variable)));
    PointerBase { base, offset, variable }
}

/// Whether a function is a constructor of C++.
pub fn is_constructor(function: Value) -> bool {
    llvm!(sd_is_constructor(function.0))
}

pub fn has_fixed_size(module: Module, ty: Type) -> bool {
    llvm!(sd_has_fixed_size(module.0, ty.0))
}

/// The bits of an integer or floating-point constant, lowest word first.
pub fn constant_words(constant: Value) -> Vec<u64> {
    let mut bits = 0;
    let count = llvm!(sd_constant_word(constant.0, 0, &mut bits));
    let mut word = |i| {
        llvm!(sd_constant_word(constant.0, i, &mut bits));
        bits
    };
    (0..count).map(&mut word).collect()
}

/// The bytes of an array or vector of plain numbers.
pub fn constant_data(constant: Value) -> Vec<u8> {
    let mut len = 0;
    let data = llvm!(sd_constant_data(constant.0, &mut len));
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: the constant's own storage, of the length just given, which lives as long as the context.
    unsafe { std::slice::from_raw_parts(data, len) }.to_vec()
}

/// A member of a struct, class or union.
pub struct Member {
    pub ty: Node,
    /// None for a base class or an anonymous member.
    pub name: Option<String>,
    pub first_bit: u64,
}

impl Node {
    /// The subprogram around a local scope.
    pub fn subprogram(self) -> Option<Node> {
        node(llvm!(sd_scope_subprogram(self.0)))
    }

    pub fn parent_scope(self) -> Option<Node> {
        node(llvm!(sd_scope_parent(self.0)))
    }

    pub fn scope_name(self) -> Option<String> {
        llvm!(sd_scope_name(self.0)).owned()
    }

    pub fn linkage_name(self) -> Option<String> {
        llvm!(sd_linkage_name(self.0)).owned()
    }

    pub fn of_global(global: Value) -> Option<Node> {
        node(llvm!(sd_global_variable(global.0)))
    }

    /// The local variable that lives at an address.
    pub fn variable_at(address: Value) -> Option<Node> {
        node(llvm!(sd_variable_at(address.0)))
    }

    /// The local variable that has a value.
    pub fn variable_of(value: Value) -> Option<Node> {
        node(llvm!(sd_variable_of(value.0)))
    }

    pub fn variable_name(self) -> Option<String> {
        llvm!(sd_variable_name(self.0)).owned()
    }

    pub fn variable_type(self) -> Option<Node> {
        node(llvm!(sd_variable_type(self.0)))
    }

    pub fn pointee(self) -> Option<Node> {
        node(llvm!(sd_type_pointee(self.0)))
    }

    pub fn element(self) -> Option<Node> {
        node(llvm!(sd_type_element(self.0)))
    }

    pub fn bits(self) -> u64 {
        llvm!(sd_type_bits(self.0))
    }

    /// Elements in one row of an array of several dimensions.
    pub fn array_row(self) -> u64 {
        llvm!(sd_array_row(self.0))
    }

    /// What a function that debug info describes returns.
    pub fn return_type(function: Value) -> Option<Node> {
        node(llvm!(sd_return_type(function.0)))
    }

    /// The letter that stands for how values of the type are read (docs/hook-abi.md), if there is one.
    pub fn category(self) -> Option<char> {
        Some(char::from(llvm!(sd_type_category(self.0)))).filter(|c| *c != '\0')
    }

    /// The names of an enumeration and their values.
    pub fn enumerators(self) -> Vec<(String, i64)> {
        let mut value = 0;
        let mut one = |index| llvm!(sd_enumerator(self.0, index, &mut value)).owned().map(|name| (name, value));
        (0..).map_while(&mut one).collect()
    }

    pub fn member(self, bit: u64) -> Option<Member> {
        let (mut name, mut first_bit) = (Text::EMPTY, 0);
        let ty = node(llvm!(sd_type_member(self.0, bit, &mut name, &mut first_bit)))?;
        Some(Member { ty, name: name.owned(), first_bit })
    }
}
