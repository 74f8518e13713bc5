//! Building code and constants: LLVM's builder with the few types the pass needs.

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::{LLVMIntPredicate, LLVMLinkage};

use crate::ir::{Block, Module, Type, Value, c_string, llvm};

const UNNAMED: *const std::ffi::c_char = c"".as_ptr();

pub struct Emitter {
    pub module: Module,
    context: LLVMContextRef,
    builder: LLVMBuilderRef,
    pub void: Type,
    pub i8: Type,
    pub i32: Type,
    pub i64: Type,
    pub ptr: Type,
}

impl Drop for Emitter {
    fn drop(&mut self) {
        llvm!(LLVMDisposeBuilder(self.builder));
    }
}

impl Emitter {
    pub fn new(module: Module) -> Emitter {
        let context = module.context();
        Emitter {
            module,
            context,
            builder: llvm!(LLVMCreateBuilderInContext(context)),
            void: Type(llvm!(LLVMVoidTypeInContext(context))),
            i8: Type(llvm!(LLVMInt8TypeInContext(context))),
            i32: Type(llvm!(LLVMInt32TypeInContext(context))),
            i64: Type(llvm!(LLVMInt64TypeInContext(context))),
            ptr: Type(llvm!(LLVMPointerTypeInContext(context, 0))),
        }
    }

    pub fn int_type(&self, bits: u32) -> Type {
        Type(llvm!(LLVMIntTypeInContext(self.context, bits)))
    }

    pub fn array_type(&self, element: Type, len: u64) -> Type {
        Type(llvm!(LLVMArrayType2(element.0, len)))
    }

    pub fn function_type(&self, result: Type, parameters: &[Type]) -> Type {
        let mut raw: Vec<_> = parameters.iter().map(|t| t.0).collect();
        Type(llvm!(LLVMFunctionType(result.0, raw.as_mut_ptr(), raw.len() as u32, 0)))
    }
}

/// Constants and globals.
impl Emitter {
    pub fn int(&self, ty: Type, value: u64) -> Value {
        Value(llvm!(LLVMConstInt(ty.0, value, 0)))
    }

    pub fn word(&self, value: u64) -> Value {
        self.int(self.i64, value)
    }

    pub fn null(&self) -> Value {
        Value(llvm!(LLVMConstPointerNull(self.ptr.0)))
    }

    /// The constant address `bytes` into a global.
    pub fn constant_offset(&self, global: Value, bytes: u64) -> Value {
        let mut index = self.word(bytes).0;
        Value(llvm!(LLVMConstInBoundsGEP2(self.i8.0, global.0, &mut index, 1)))
    }

    pub fn constant_struct(&self, fields: &[Value]) -> Value {
        let mut raw: Vec<_> = fields.iter().map(|f| f.0).collect();
        Value(llvm!(LLVMConstStructInContext(self.context, raw.as_mut_ptr(), raw.len() as u32, 0)))
    }

    pub fn constant_array(&self, element: Type, items: &[Value]) -> Value {
        let mut raw: Vec<_> = items.iter().map(|f| f.0).collect();
        Value(llvm!(LLVMConstArray2(element.0, raw.as_mut_ptr(), raw.len() as u64)))
    }

    pub fn constant_bytes(&self, bytes: &[u8]) -> Value {
        Value(llvm!(LLVMConstStringInContext2(self.context, bytes.as_ptr().cast(), bytes.len(), 1)))
    }

    /// A declaration to be replaced once its content is known.
    pub fn declare_global(&self, name: &str, ty: Type) -> Value {
        Value(llvm!(LLVMAddGlobal(self.module.0, ty.0, c_string(name).as_ptr())))
    }

    pub fn private_global(&self, name: &str, content: Value, constant: bool) -> Value {
        let global = self.declare_global(name, content.ty());
        llvm!(LLVMSetInitializer(global.0, content.0));
        llvm!(LLVMSetLinkage(global.0, LLVMLinkage::LLVMPrivateLinkage));
        llvm!(LLVMSetGlobalConstant(global.0, constant as i32));
        llvm!(LLVMSetAlignment(global.0, 8));
        global
    }

    pub fn delete_global(&self, global: Value) {
        llvm!(LLVMDeleteGlobal(global.0));
    }

    pub fn add_function(&self, name: &str, ty: Type, linkage: LLVMLinkage) -> Value {
        let function = llvm!(LLVMAddFunction(self.module.0, c_string(name).as_ptr(), ty.0));
        llvm!(LLVMSetLinkage(function, linkage));
        Value(function)
    }
}

/// Where code goes.
impl Emitter {
    pub fn new_block(&self, function: Value) -> Block {
        Block(llvm!(LLVMAppendBasicBlockInContext(self.context, function.0, UNNAMED)))
    }

    pub fn at_end(&self, block: Block) {
        llvm!(LLVMPositionBuilderAtEnd(self.builder, block.0));
        llvm!(LLVMSetCurrentDebugLocation2(self.builder, std::ptr::null_mut()));
    }

    /// Before an instruction, at its place in the source or failing that at the function's.
    pub fn before(&self, instruction: Value) {
        llvm!(LLVMPositionBuilderBefore(self.builder, instruction.0));
        let own = llvm!(LLVMInstructionGetDebugLoc(instruction.0));
        self.set_location(if own.is_null() { self.line_zero(instruction.block()) } else { own });
    }

    /// Right behind an instruction that is no terminator, at its place in the source.
    pub fn behind(&self, instruction: Value) {
        self.before(instruction);
        if let Some(next) = instruction.next() {
            llvm!(LLVMPositionBuilderBefore(self.builder, next.0));
        }
    }

    /// Code that belongs to no line.
    pub fn before_without_line(&self, instruction: Value) {
        llvm!(LLVMPositionBuilderBefore(self.builder, instruction.0));
        self.set_location(self.line_zero(instruction.block()));
    }

    fn set_location(&self, location: LLVMMetadataRef) {
        llvm!(LLVMSetCurrentDebugLocation2(self.builder, location));
    }

    /// Line 0 of the function around the block: calls in functions with debug info must have a location.
    fn line_zero(&self, block: Block) -> LLVMMetadataRef {
        let function = llvm!(LLVMGetBasicBlockParent(block.0));
        let scope = llvm!(LLVMGetSubprogram(function));
        if scope.is_null() {
            return scope;
        }
        llvm!(LLVMDIBuilderCreateDebugLocation(self.context, 0, 0, scope, std::ptr::null_mut()))
    }
}

/// Instructions.
impl Emitter {
    pub fn alloca(&self, ty: Type, align: u32) -> Value {
        let alloca = llvm!(LLVMBuildAlloca(self.builder, ty.0, c"symdpor.frame".as_ptr()));
        llvm!(LLVMSetAlignment(alloca, align));
        Value(alloca)
    }

    pub fn load(&self, ty: Type, address: Value) -> Value {
        Value(llvm!(LLVMBuildLoad2(self.builder, ty.0, address.0, UNNAMED)))
    }

    pub fn store(&self, value: Value, address: Value) -> Value {
        Value(llvm!(LLVMBuildStore(self.builder, value.0, address.0)))
    }

    /// Stores to a word of ours, whatever the alignment of the value's type.
    pub fn store_words(&self, value: Value, address: Value) {
        let store = self.store(value, address);
        llvm!(LLVMSetAlignment(store.0, 8));
    }

    /// The address `bytes` further on.
    pub fn offset(&self, address: Value, bytes: u64) -> Value {
        if bytes == 0 {
            return address;
        }
        let mut index = self.word(bytes).0;
        Value(llvm!(LLVMBuildInBoundsGEP2(self.builder, self.i8.0, address.0, &mut index, 1, UNNAMED)))
    }

    pub fn call(&self, ty: Type, callee: Value, arguments: &[Value]) -> Value {
        let mut raw: Vec<_> = arguments.iter().map(|a| a.0).collect();
        let len = raw.len() as u32;
        Value(llvm!(LLVMBuildCall2(self.builder, ty.0, callee.0, raw.as_mut_ptr(), len, UNNAMED)))
    }

    /// An integer widened or narrowed without regard to its sign.
    pub fn int_cast(&self, value: Value, ty: Type) -> Value {
        if value.ty() == ty {
            return value;
        }
        Value(llvm!(LLVMBuildIntCast2(self.builder, value.0, ty.0, 0, UNNAMED)))
    }

    pub fn bit_cast(&self, value: Value, ty: Type) -> Value {
        Value(llvm!(LLVMBuildBitCast(self.builder, value.0, ty.0, UNNAMED)))
    }

    pub fn pointer_to_int(&self, value: Value, ty: Type) -> Value {
        Value(llvm!(LLVMBuildPtrToInt(self.builder, value.0, ty.0, UNNAMED)))
    }

    /// Like `offset`, for an address that may lie outside its object.
    pub fn byte_offset(&self, address: Value, bytes: u64) -> Value {
        let mut index = self.word(bytes).0;
        Value(llvm!(LLVMBuildGEP2(self.builder, self.i8.0, address.0, &mut index, 1, UNNAMED)))
    }

    pub fn add(&self, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildAdd(self.builder, a.0, b.0, UNNAMED)))
    }

    pub fn and(&self, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildAnd(self.builder, a.0, b.0, UNNAMED)))
    }

    pub fn or(&self, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildOr(self.builder, a.0, b.0, UNNAMED)))
    }

    pub fn multiply(&self, a: Value, b: Value) -> Value {
        Value(llvm!(LLVMBuildMul(self.builder, a.0, b.0, UNNAMED)))
    }

    pub fn extract_value(&self, aggregate: Value, index: u32) -> Value {
        Value(llvm!(LLVMBuildExtractValue(self.builder, aggregate.0, index, UNNAMED)))
    }

    pub fn extract_lane(&self, vector: Value, lane: u32) -> Value {
        Value(llvm!(LLVMBuildExtractElement(self.builder, vector.0, self.word(lane.into()).0, UNNAMED)))
    }

    pub fn is_not_null(&self, pointer: Value) -> Value {
        let null = self.null().0;
        Value(llvm!(LLVMBuildICmp(self.builder, LLVMIntPredicate::LLVMIntNE, pointer.0, null, UNNAMED)))
    }

    pub fn branch_if(&self, condition: Value, then: Block, otherwise: Block) {
        llvm!(LLVMBuildCondBr(self.builder, condition.0, then.0, otherwise.0));
    }

    pub fn branch(&self, to: Block) {
        llvm!(LLVMBuildBr(self.builder, to.0));
    }

    pub fn return_value(&self, value: Value) {
        llvm!(LLVMBuildRet(self.builder, value.0));
    }

    pub fn int_to_pointer(&self, value: Value) -> Value {
        Value(llvm!(LLVMBuildIntToPtr(self.builder, value.0, self.ptr.0, UNNAMED)))
    }

    pub fn int_to_float(&self, value: Value, ty: Type) -> Value {
        Value(llvm!(LLVMBuildSIToFP(self.builder, value.0, ty.0, UNNAMED)))
    }

    pub fn unreachable(&self) {
        llvm!(LLVMBuildUnreachable(self.builder));
    }

    pub fn return_void(&self) {
        llvm!(LLVMBuildRetVoid(self.builder));
    }
}
