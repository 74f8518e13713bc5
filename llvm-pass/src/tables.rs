//! The module's records as constants: sites, functions, strings, digest, descriptor, and the constructor that announces
//! them. Layout: `symdpor_abi::module`.

use inkwell::llvm_sys::LLVMLinkage;
use inkwell::llvm_sys::core::*;
use symdpor_abi::PROTOCOL_VERSION;
use symdpor_abi::module::{Function, MODULE_MAGIC, MODULE_SECTION, REGISTER_SYMBOL, Site};

use crate::emit::Emitter;
use crate::hooks::{HookTable, own_function};
use crate::ir::{Module, Value, c_string, llvm};
use crate::shims;
use crate::sites::{FunctionIndex, SiteIndex, Sites};

/// Stand-ins for tables whose length is known only at the end.
pub struct Tables {
    sites: Value,
    functions: Value,
}

impl Tables {
    pub fn new(emit: &Emitter) -> Tables {
        let open = emit.array_type(emit.i8, 0);
        Tables {
            sites: emit.declare_global("symdpor.sites.open", open),
            functions: emit.declare_global("symdpor.functions.open", open),
        }
    }

    pub fn site(&self, emit: &Emitter, index: SiteIndex) -> Value {
        emit.constant_offset(self.sites, u64::from(index.0) * size_of::<Site>() as u64)
    }

    pub fn function(&self, emit: &Emitter, index: FunctionIndex) -> Value {
        emit.constant_offset(self.functions, u64::from(index.0) * size_of::<Function>() as u64)
    }

    /// Writes everything into the module.
    pub fn finish(self, emit: &Emitter, hooks: &HookTable, sites: &Sites, digest: &[u8]) {
        let site_words: Vec<u32> = sites.sites.iter().flat_map(site_words).collect();
        let function_words: Vec<u32> = sites.functions.iter().flat_map(function_words).collect();
        let site_table = word_table(emit, "symdpor.sites", &site_words, false);
        let function_table = word_table(emit, "symdpor.functions", &function_words, true);
        replace(emit, self.sites, site_table);
        replace(emit, self.functions, function_table);
        let strings = emit.private_global("symdpor.strings", emit.constant_bytes(sites.strings.bytes()), true);
        let digest_bytes = emit.private_global("symdpor.digest", emit.constant_bytes(digest), true);
        let descriptor = emit.constant_struct(&[
            emit.word(MODULE_MAGIC),
            emit.int(emit.i32, PROTOCOL_VERSION.into()),
            emit.int(emit.i32, sites.sites.len() as u64),
            hooks.global,
            site_table,
            function_table,
            emit.int(emit.i32, sites.functions.len() as u64),
            emit.int(emit.i32, sites.strings.bytes().len() as u64),
            strings,
            digest_bytes,
            emit.word(digest.len() as u64),
        ]);
        announce(emit, descriptor);
    }
}

fn site_words(site: &Site) -> [u32; 8] {
    [site.id, site.line, site.column, site.file, site.function, site.name, site.kind, site.inlined_at]
}

fn function_words(function: &Function) -> [u32; 6] {
    [function.symbol, function.name, function.file, function.line, function.slots, function.flags]
}

fn word_table(emit: &Emitter, name: &str, words: &[u32], constant: bool) -> Value {
    let items: Vec<Value> = words.iter().map(|&w| emit.int(emit.i32, w.into())).collect();
    emit.private_global(name, emit.constant_array(emit.i32, &items), constant)
}

fn replace(emit: &Emitter, open: Value, table: Value) {
    open.replace_uses(table);
    emit.delete_global(open);
}

/// A file of data only: a symbol tells that it was compiled with the pass. (Others have that of their descriptor.)
pub fn mark_as_seen(module: Module) {
    let emit = Emitter::new(module);
    if module.global_variables().iter().any(|v| !v.is_declaration()) {
        let mark = emit.private_global("symdpor.data", emit.word(0), true);
        llvm!(LLVMSetLinkage(mark.0, LLVMLinkage::LLVMInternalLinkage));
        shims::append_to_compiler_used(module, &[mark]);
    }
}

/// The descriptor in its section, kept by linkers, and a constructor before all others that registers it.
fn announce(emit: &Emitter, content: Value) {
    let descriptor = emit.private_global("symdpor.module", content, false);
    llvm!(LLVMSetLinkage(descriptor.0, LLVMLinkage::LLVMInternalLinkage));
    llvm!(LLVMSetSection(descriptor.0, c_string(MODULE_SECTION).as_ptr()));
    shims::append_to_used(emit.module, descriptor);
    let constructor = own_function(emit, "symdpor.register", emit.function_type(emit.void, &[]));
    fill_constructor(emit, constructor, descriptor);
    shims::append_to_constructors(emit.module, constructor, 0);
}

fn fill_constructor(emit: &Emitter, constructor: Value, descriptor: Value) {
    let ty = emit.function_type(emit.void, &[emit.ptr]);
    let register = register_function(emit);
    let [entry, present, done] = std::array::from_fn(|_| emit.new_block(constructor));
    emit.at_end(entry);
    emit.branch_if(emit.is_not_null(register), present, done);
    emit.at_end(present);
    emit.call(ty, register, &[descriptor]);
    emit.branch(done);
    emit.at_end(done);
    emit.return_void();
}

/// Weak: absent when the program runs alone.
fn register_function(emit: &Emitter) -> Value {
    let known = llvm!(LLVMGetNamedFunction(emit.module.0, c_string(REGISTER_SYMBOL).as_ptr()));
    if !known.is_null() {
        return Value(known);
    }
    let ty = emit.function_type(emit.void, &[emit.ptr]);
    emit.add_function(REGISTER_SYMBOL, ty, LLVMLinkage::LLVMExternalWeakLinkage)
}
