//! Keeps the optimiser from knowing which functions allocate and free memory, and which compare strings.
//!
//! If it knows, it removes a block that does not leave its function together with every access to it, stores just before
//! `free` and stores after it; writing past the end of such a block, or using it after `free`, would be found at -O0
//! only. Without that knowledge a block is memory like any other.

use crate::attributes;
use crate::ir::{Module, Value};

const NAMES: [&str; 15] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "reallocf",
    "free",
    "cfree",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "strdup",
    "strndup",
    "__strdup",
];

/// Comparisons end where two strings differ. The optimiser, if it knows them, may read further: of a string that has four bytes,
/// it reads all four at once. Those beyond the difference may be another thread's.
const COMPARISONS: [&str; 3] = ["strcmp", "strncmp", "strstr"];

/// `operator new`, `new[]`, `delete` and `delete[]`, all overloads.
const OPERATORS: [&str; 4] = ["_Znw", "_Zna", "_Zdl", "_Zda"];

pub fn conceal(module: Module) {
    for function in module.functions() {
        // What a call of the function returns may be known to others, whoever declared otherwise.
        attributes::remove_from_result(function, "noalias");
        if function.is_declaration() && (is_allocator(&function.name()) || COMPARISONS.contains(&&*function.name())) {
            conceal_function(module, function);
        }
    }
}

fn is_allocator(name: &str) -> bool {
    NAMES.contains(&name) || OPERATORS.iter().any(|prefix| name.starts_with(prefix))
}

fn conceal_function(module: Module, function: Value) {
    attributes::add(function, module, "nobuiltin");
    ["allockind", "allocsize"].iter().for_each(|a| attributes::remove(function, a));
    for call in function.users().into_iter().filter(|u| u.is_call()) {
        attributes::add_to_call(call, module, "nobuiltin");
        ["builtin", "allockind", "allocsize"].iter().for_each(|a| attributes::remove_from_call(call, a));
        attributes::remove_from_call_result(call, "noalias");
    }
}
