//! Which memory an instruction touches, and how: everything the hooks report.
//!
//! Accesses that stay on the thread's own stack, and reads of constants, are left out.

use symdpor_abi::module::SiteKind;

use crate::assembly;
use crate::atomics::{self, Atomic};
use crate::attributes::call_argument_type;
use crate::escape::Locals;
use crate::ir::{Kind, Module, Opcode, Value};
use crate::shims::{has_fixed_size, pointer_base};

/// Larger accesses are reported as ranges.
const MAX_PLAIN_SIZE: u64 = 16;

/// How long a range is.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    Bytes(u64),
    /// So many bytes.
    Value(Value),
    /// So many times the constant.
    Scaled(Value, u64),
    /// The constant for each lane that the mask enables.
    Enabled(Value, u64),
}

/// The addresses of a masked access's lanes.
#[derive(Clone, Copy, Debug)]
pub enum Lanes {
    /// One behind the other.
    Contiguous(Value),
    /// A vector of addresses.
    Scattered(Value),
}

#[derive(Clone, Copy, Debug)]
pub enum Access {
    Load {
        address: Value,
        size: u64,
    },
    Store {
        address: Value,
        size: u64,
    },
    LoadRange {
        address: Value,
        length: Length,
    },
    StoreRange {
        address: Value,
        length: Length,
    },
    /// Only lanes that the mask enables.
    Masked {
        lanes: Lanes,
        mask: Value,
        size: u64,
        store: bool,
    },
    Atomic(Atomic),
    Fence {
        order: u32,
    },
}

impl Access {
    pub fn load(address: Value, size: u64) -> Access {
        let length = Length::Bytes(size);
        if size <= MAX_PLAIN_SIZE { Access::Load { address, size } } else { Access::LoadRange { address, length } }
    }

    pub fn store(address: Value, size: u64) -> Access {
        let length = Length::Bytes(size);
        if size <= MAX_PLAIN_SIZE { Access::Store { address, size } } else { Access::StoreRange { address, length } }
    }

    /// The address accessed, where there is just one.
    pub fn address(&self) -> Option<Value> {
        match *self {
            Access::Load { address, .. }
            | Access::Store { address, .. }
            | Access::LoadRange { address, .. }
            | Access::StoreRange { address, .. } => Some(address),
            Access::Atomic(atomic) => Some(atomic.address),
            Access::Masked { lanes: Lanes::Contiguous(address), .. } => Some(address),
            Access::Masked { .. } | Access::Fence { .. } => None,
        }
    }

    /// How many bytes are accessed at once if it is more than a scalar, else 0; unknown lengths count as endless.
    pub fn whole(&self) -> u64 {
        match *self {
            Access::Atomic(atomic) if atomic.shape & 0xff > 8 => (atomic.shape & 0xff).into(),
            Access::LoadRange { length: Length::Bytes(bytes), .. }
            | Access::StoreRange { length: Length::Bytes(bytes), .. } => bytes,
            Access::LoadRange { .. } | Access::StoreRange { .. } => u64::MAX,
            _ => 0,
        }
    }

    pub fn is_read(&self) -> bool {
        matches!(self, Access::Load { .. } | Access::LoadRange { .. } | Access::Masked { store: false, .. })
    }

    pub fn site_kind(&self) -> SiteKind {
        match self {
            Access::Atomic(_) => SiteKind::Atomic,
            Access::Fence { .. } => SiteKind::Fence,
            _ if self.is_read() => SiteKind::Load,
            _ => SiteKind::Store,
        }
    }
}

/// What `instruction` accesses, without what needs no hook.
pub fn of_instruction(module: Module, instruction: Value, locals: &Locals) -> Vec<Access> {
    let mut found = all_accesses(module, instruction);
    found.retain(|access| needs_hook(module, access, locals));
    found
}

fn needs_hook(module: Module, access: &Access, locals: &Locals) -> bool {
    let empty = matches!(
        access,
        Access::LoadRange { length: Length::Bytes(0), .. }
            | Access::StoreRange { length: Length::Bytes(0), .. }
            | Access::Load { size: 0, .. }
            | Access::Store { size: 0, .. }
    );
    let Some(address) = access.address() else { return true };
    let base = pointer_base(module, address).base;
    let constant = access.is_read() && base.is_constant_global();
    !empty && !constant && !locals.is_private(address) && !is_counter(base)
}

/// Whether a variable is the compiler's own, for coverage or profiles (`--coverage`, `-fprofile-instr-generate`). They are not
/// the program's, and that threads count without a lock is accepted.
fn is_counter(base: Value) -> bool {
    const NAMES: [&str; 6] = ["__llvm_gcov", "__llvm_gcda", "__profc_", "__profd_", "__profbm_", "__sancov_"];
    base.kind() == Kind::GlobalVariable && NAMES.iter().any(|n| base.name().starts_with(n))
}

fn all_accesses(module: Module, instruction: Value) -> Vec<Access> {
    match instruction.opcode() {
        Opcode::LLVMLoad | Opcode::LLVMStore if atomics::is_atomic(instruction) => {
            vec![Access::Atomic(atomics::of_instruction(module, instruction))]
        }
        Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => {
            vec![Access::Atomic(atomics::of_instruction(module, instruction))]
        }
        Opcode::LLVMLoad if has_fixed_size(module, instruction.ty()) => {
            vec![Access::load(instruction.operand(0), module.store_size(instruction.ty()))]
        }
        Opcode::LLVMStore if has_fixed_size(module, instruction.operand(0).ty()) => {
            vec![Access::store(instruction.operand(1), module.store_size(instruction.operand(0).ty()))]
        }
        Opcode::LLVMFence => {
            atomics::fence_order(instruction).map(|order| Access::Fence { order }).into_iter().collect()
        }
        Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr => call_accesses(module, instruction),
        _ => Vec::new(),
    }
}

fn call_accesses(module: Module, call: Value) -> Vec<Access> {
    if call.callee().kind() == Kind::InlineAsm {
        return assembly::accesses(module, call);
    }
    let mut found = copied_arguments(module, call);
    if let Some(callee) = call.called_function() {
        let name = callee.name();
        if callee.is_intrinsic() {
            found.extend(intrinsic_accesses(module, &name, call));
        } else if callee.is_declaration() {
            found.extend(library_accesses(&name, call));
        }
    }
    found
}

/// The caller copies `byval` arguments.
fn copied_arguments(module: Module, call: Value) -> Vec<Access> {
    let arguments = (0..).zip(call.call_arguments());
    let copied = arguments.filter_map(|(i, address)| Some((address, call_argument_type(call, i, "byval")?)));
    copied.map(|(address, ty)| range(address, Length::Bytes(module.store_size(ty)), false)).collect()
}

fn range(address: Value, length: Length, store: bool) -> Access {
    if store { Access::StoreRange { address, length } } else { Access::LoadRange { address, length } }
}

fn intrinsic_accesses(module: Module, name: &str, call: Value) -> Vec<Access> {
    let arguments = call.call_arguments();
    let argument = |i: usize| arguments[i];
    let length = |i: usize| constant_or_value(arguments[i]);
    if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") {
        return vec![range(argument(1), length(2), false), range(argument(0), length(2), true)];
    }
    if name.starts_with("llvm.memset.") {
        return vec![range(argument(0), length(2), true)];
    }
    if name.starts_with("llvm.experimental.memset.pattern.") {
        let size = module.alloc_size(argument(1).ty());
        return vec![range(argument(0), Length::Scaled(argument(2), size), true)];
    }
    let Some(operation) = name.strip_prefix("llvm.masked.") else { return Vec::new() };
    masked_access(module, operation, call, &arguments).into_iter().collect()
}

fn constant_or_value(length: Value) -> Length {
    length.constant_int().map_or(Length::Value(length), Length::Bytes)
}

/// Masked loads and stores, gathers and scatters, expanding loads and compressing stores.
fn masked_access(module: Module, operation: &str, call: Value, arguments: &[Value]) -> Option<Access> {
    let (operation, _) = operation.split_once('.')?;
    let store = matches!(operation, "store" | "scatter" | "compressstore");
    let data = if store { arguments[0].ty() } else { call.ty() };
    if !has_fixed_size(module, data) {
        return None;
    }
    let size = module.store_size(data.element());
    let pointer = arguments[usize::from(store)];
    let mask = *arguments.iter().find(|a| a.ty().is_vector() && is_bit(a.ty().element()))?;
    Some(match operation {
        "load" | "store" => Access::Masked { lanes: Lanes::Contiguous(pointer), mask, size, store },
        "gather" | "scatter" => Access::Masked { lanes: Lanes::Scattered(pointer), mask, size, store },
        "expandload" | "compressstore" => range(pointer, Length::Enabled(mask, size), store),
        _ => return None,
    })
}

fn is_bit(ty: crate::ir::Type) -> bool {
    ty.kind() == inkwell::llvm_sys::LLVMTypeKind::LLVMIntegerTypeKind && ty.int_width() == 1
}

/// Library functions whose accesses follow from their arguments.
fn library_accesses(name: &str, call: Value) -> Vec<Access> {
    if let Some(found) = atomics::of_library_call(name, call) {
        return atomic_call(call, found);
    }
    let arguments = call.call_arguments();
    if arguments.len() < 2 {
        return Vec::new();
    }
    let at = |i: usize, length: usize, store: bool| match arguments.get(length) {
        Some(&l) if matches!(arguments[i].ty().kind(), inkwell::llvm_sys::LLVMTypeKind::LLVMPointerTypeKind) => {
            Some(range(arguments[i], constant_or_value(l), store))
        }
        _ => None,
    };
    let found = match name {
        "memcpy" | "memmove" | "mempcpy" | "__memcpy_chk" | "__memmove_chk" | "__mempcpy_chk" => {
            vec![at(1, 2, false), at(0, 2, true)]
        }
        "memset" | "__memset_chk" => vec![at(0, 2, true)],
        "bzero" => vec![at(0, 1, true)],
        "bcopy" => vec![at(0, 2, false), at(1, 2, true)],
        "memcmp" | "bcmp" => vec![at(0, 2, false), at(1, 2, false)],
        _ => vec![],
    };
    found.into_iter().flatten().collect()
}

/// An invoke has no single place behind it, so there its atomic access is reported as a plain one.
fn atomic_call(call: Value, found: atomics::LibraryCall) -> Vec<Access> {
    let size = Length::Bytes(found.size);
    let reads = found.reads.into_iter().map(|a| range(a, size, false));
    let writes = found.writes.into_iter().map(|a| range(a, size, true));
    let atomic =
        if call.is(Opcode::LLVMCall) { Access::Atomic(found.atomic) } else { range(found.atomic.address, size, true) };
    reads.chain(writes).chain([atomic]).collect()
}
