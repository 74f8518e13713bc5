//! Handles to the module being transformed: values, types, blocks, and walks over them.
//!
//! inkwell's own value types refuse some of what real programs contain (tokens, metadata operands, inline assembly), so
//! the pass goes through these handles to the C interface that inkwell is built on.
//!
//! Invariant: every handle points into the one module that the running stage was given, on the thread it was given to,
//! and nothing keeps a handle to an instruction that it erased.

use std::ffi::CString;

pub use inkwell::llvm_sys::LLVMOpcode as Opcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::target::*;
use inkwell::llvm_sys::{LLVMLinkage, LLVMTailCallKind, LLVMTypeKind};

/// Calls LLVM with handles of the current module.
macro_rules! llvm {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: handles obey the invariant at the top of `ir`: they are live parts of the module at hand, and the
        // callers check the kind of value that the function asks for.
        unsafe { $function($($argument),*) }
    };
}
pub(crate) use llvm;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub LLVMValueRef);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Type(pub LLVMTypeRef);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Block(pub LLVMBasicBlockRef);

#[derive(Clone, Copy)]
pub struct Module(pub LLVMModuleRef);

impl Module {
    pub fn context(self) -> LLVMContextRef {
        llvm!(LLVMGetModuleContext(self.0))
    }

    pub fn functions(self) -> Vec<Value> {
        let first = llvm!(LLVMGetFirstFunction(self.0));
        chain(first, |f| llvm!(LLVMGetNextFunction(f))).map(Value).collect()
    }

    pub fn global_variables(self) -> Vec<Value> {
        let first = llvm!(LLVMGetFirstGlobal(self.0));
        chain(first, |g| llvm!(LLVMGetNextGlobal(g))).map(Value).collect()
    }

    pub fn ifunc_resolvers(self) -> Vec<Value> {
        let first = llvm!(LLVMGetFirstGlobalIFunc(self.0));
        chain(first, |f| llvm!(LLVMGetNextGlobalIFunc(f)))
            .map(|f| Value(llvm!(LLVMGetGlobalIFuncResolver(f))))
            .collect()
    }

    /// Bytes that a load or store of this type touches.
    pub fn store_size(self, ty: Type) -> u64 {
        let layout = llvm!(LLVMGetModuleDataLayout(self.0));
        llvm!(LLVMStoreSizeOfType(layout, ty.0))
    }

    /// Bytes of an address.
    pub fn pointer_size(self) -> u32 {
        let layout = llvm!(LLVMGetModuleDataLayout(self.0));
        llvm!(LLVMPointerSize(layout))
    }

    pub fn bit_size(self, ty: Type) -> u64 {
        let layout = llvm!(LLVMGetModuleDataLayout(self.0));
        llvm!(LLVMSizeOfTypeInBits(layout, ty.0))
    }

    /// Distance between two elements of this type in an array.
    pub fn alloc_size(self, ty: Type) -> u64 {
        let layout = llvm!(LLVMGetModuleDataLayout(self.0));
        llvm!(LLVMABISizeOfType(layout, ty.0))
    }
}

/// Follows a chain of raw pointers up to the null at its end.
fn chain<T>(first: *mut T, next: impl Fn(*mut T) -> *mut T) -> impl Iterator<Item = *mut T> {
    std::iter::successors(Some(first).filter(|p| !p.is_null()), move |&p| Some(next(p)).filter(|p| !p.is_null()))
}

fn present(raw: LLVMValueRef) -> Option<Value> {
    (!raw.is_null()).then_some(Value(raw))
}

impl Type {
    pub fn kind(self) -> LLVMTypeKind {
        llvm!(LLVMGetTypeKind(self.0))
    }

    pub fn is_pointer(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMPointerTypeKind
    }

    pub fn is_vector(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMVectorTypeKind
    }

    pub fn is_aggregate(self) -> bool {
        matches!(self.kind(), LLVMTypeKind::LLVMStructTypeKind | LLVMTypeKind::LLVMArrayTypeKind)
    }

    /// Element type of a vector or array.
    pub fn element(self) -> Type {
        Type(llvm!(LLVMGetElementType(self.0)))
    }

    pub fn lanes(self) -> u32 {
        llvm!(LLVMGetVectorSize(self.0))
    }

    pub fn int_width(self) -> u32 {
        llvm!(LLVMGetIntTypeWidth(self.0))
    }
}

impl Block {
    pub fn instructions(self) -> Vec<Value> {
        let first = llvm!(LLVMGetFirstInstruction(self.0));
        chain(first, |i| llvm!(LLVMGetNextInstruction(i))).map(Value).collect()
    }

    /// Every block has one once the front end is done.
    pub fn terminator(self) -> Value {
        Value(llvm!(LLVMGetBasicBlockTerminator(self.0)))
    }

    pub fn function(self) -> Value {
        Value(llvm!(LLVMGetBasicBlockParent(self.0)))
    }

    pub fn successors(self) -> Vec<Block> {
        let last = self.terminator().0;
        (0..llvm!(LLVMGetNumSuccessors(last))).map(|i| Block(llvm!(LLVMGetSuccessor(last, i)))).collect()
    }
}

/// What a value is, as far as the pass cares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Instruction(Opcode),
    Argument,
    Function,
    GlobalVariable,
    InlineAsm,
    Block,
    Constant,
    /// Metadata, tokens.
    Other,
}

impl Value {
    pub fn kind(self) -> Kind {
        use inkwell::llvm_sys::LLVMValueKind::*;
        match llvm!(LLVMGetValueKind(self.0)) {
            LLVMInstructionValueKind => Kind::Instruction(llvm!(LLVMGetInstructionOpcode(self.0))),
            LLVMArgumentValueKind => Kind::Argument,
            LLVMFunctionValueKind => Kind::Function,
            LLVMGlobalVariableValueKind => Kind::GlobalVariable,
            LLVMInlineAsmValueKind => Kind::InlineAsm,
            LLVMBasicBlockValueKind => Kind::Block,
            LLVMMemoryUseValueKind | LLVMMemoryDefValueKind | LLVMMemoryPhiValueKind | LLVMMetadataAsValueValueKind => {
                Kind::Other
            }
            _ => Kind::Constant,
        }
    }

    /// The opcode, for instructions.
    pub fn opcode(self) -> Opcode {
        llvm!(LLVMGetInstructionOpcode(self.0))
    }

    pub fn is(self, opcode: Opcode) -> bool {
        self.kind() == Kind::Instruction(opcode)
    }

    pub fn ty(self) -> Type {
        Type(llvm!(LLVMTypeOf(self.0)))
    }

    pub fn name(self) -> String {
        let mut len = 0;
        let data = llvm!(LLVMGetValueName2(self.0, &mut len));
        bytes_to_string(data.cast(), len)
    }

    /// As LLVM prints it.
    pub fn print(self) -> String {
        let text = llvm!(LLVMPrintValueToString(self.0));
        // SAFETY: LLVM returns a NUL-terminated string, which is ours to free.
        let copy = unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned();
        llvm!(LLVMDisposeMessage(text));
        copy
    }

    pub fn operand(self, index: u32) -> Value {
        Value(llvm!(LLVMGetOperand(self.0, index)))
    }

    /// Null operands (of half-built or constant users) are left out.
    pub fn operands(self) -> Vec<Value> {
        let count = llvm!(LLVMGetNumOperands(self.0)).max(0) as u32;
        (0..count).filter_map(|i| present(llvm!(LLVMGetOperand(self.0, i)))).collect()
    }

    pub fn users(self) -> Vec<Value> {
        let first = llvm!(LLVMGetFirstUse(self.0));
        chain(first, |u| llvm!(LLVMGetNextUse(u))).map(|u| Value(llvm!(LLVMGetUser(u)))).collect()
    }

    pub fn is_unused(self) -> bool {
        llvm!(LLVMGetFirstUse(self.0)).is_null()
    }

    pub fn next(self) -> Option<Value> {
        present(llvm!(LLVMGetNextInstruction(self.0)))
    }

    pub fn block(self) -> Block {
        Block(llvm!(LLVMGetInstructionParent(self.0)))
    }

    pub fn erase(self) {
        llvm!(LLVMInstructionEraseFromParent(self.0));
    }

    pub fn replace_uses(self, with: Value) {
        llvm!(LLVMReplaceAllUsesWith(self.0, with.0));
    }
}

/// Functions.
impl Value {
    pub fn blocks(self) -> Vec<Block> {
        let first = llvm!(LLVMGetFirstBasicBlock(self.0));
        chain(first, |b| llvm!(LLVMGetNextBasicBlock(b))).map(Block).collect()
    }

    pub fn arguments(self) -> Vec<Value> {
        (0..llvm!(LLVMCountParams(self.0))).map(|i| Value(llvm!(LLVMGetParam(self.0, i)))).collect()
    }

    pub fn is_declaration(self) -> bool {
        llvm!(LLVMIsDeclaration(self.0)) != 0
    }

    pub fn linkage(self) -> LLVMLinkage {
        llvm!(LLVMGetLinkage(self.0))
    }

    pub fn is_intrinsic(self) -> bool {
        llvm!(LLVMGetIntrinsicID(self.0)) != 0
    }
}

/// Calls, invokes and callbrs.
impl Value {
    pub fn is_call(self) -> bool {
        matches!(self.kind(), Kind::Instruction(Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr))
    }

    pub fn callee(self) -> Value {
        Value(llvm!(LLVMGetCalledValue(self.0)))
    }

    /// The function called, when the call is direct.
    pub fn called_function(self) -> Option<Value> {
        Some(self.callee()).filter(|c| c.kind() == Kind::Function)
    }

    pub fn call_arguments(self) -> Vec<Value> {
        (0..llvm!(LLVMGetNumArgOperands(self.0))).map(|i| self.operand(i)).collect()
    }

    pub fn is_musttail(self) -> bool {
        self.is(Opcode::LLVMCall) && llvm!(LLVMGetTailCallKind(self.0)) == LLVMTailCallKind::LLVMTailCallKindMustTail
    }

    /// The callee may touch the caller's frame from now on.
    pub fn drop_tail(self) {
        if self.is(Opcode::LLVMCall) && !self.is_musttail() {
            llvm!(LLVMSetTailCallKind(self.0, LLVMTailCallKind::LLVMTailCallKindNone));
        }
    }

    /// A call that runs other code: neither an intrinsic nor inline assembly.
    pub fn is_real_call(self) -> bool {
        self.is_call()
            && self.callee().kind() != Kind::InlineAsm
            && !self.called_function().is_some_and(|f| f.is_intrinsic())
    }

    pub fn normal_destination(self) -> Block {
        Block(llvm!(LLVMGetNormalDest(self.0)))
    }
}

/// Constants.
impl Value {
    pub fn constant_int(self) -> Option<u64> {
        let int = llvm!(LLVMIsAConstantInt(self.0));
        (!int.is_null() && self.ty().int_width() <= 64).then(|| llvm!(LLVMConstIntGetZExtValue(int)))
    }

    pub fn is_thread_local(self) -> bool {
        llvm!(LLVMIsThreadLocal(self.0)) != 0
    }

    pub fn is_constant_global(self) -> bool {
        self.kind() == Kind::GlobalVariable && llvm!(LLVMIsGlobalConstant(self.0)) != 0
    }
}

/// A copy of text that LLVM owns; bytes that are not UTF-8 are replaced.
pub fn bytes_to_string(data: *const u8, len: usize) -> String {
    if data.is_null() || len == 0 {
        return String::new();
    }
    // SAFETY: LLVM gave us this pointer with its length, and nothing changes the module while the copy is made.
    let bytes = unsafe { std::slice::from_raw_parts(data, len) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names handed to LLVM; none that the pass makes contains a NUL.
pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
