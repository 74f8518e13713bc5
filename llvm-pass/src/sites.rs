//! Sites and functions as the source names them, collected while hooks are placed.
//!
//! A call or an atomic access has a site of its own, because a suspended frame is recognised by it; plain accesses
//! with the same description share one.

use std::collections::HashMap;

use inkwell::llvm_sys::debuginfo::*;
use symdpor_abi::module::{Function, Site, SiteKind};

use crate::access::Access;
use crate::ir::{Module, Value, bytes_to_string, llvm};
use crate::names::{self, Named};
use crate::shims::{Node, node};
use crate::strings::Strings;

/// Index of a site in the module's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SiteIndex(pub u32);

/// Index of a function in the module's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FunctionIndex(pub u32);

/// A function, and where in it.
#[derive(Clone, Copy)]
pub struct Place {
    pub function: Value,
    pub location: Option<Node>,
}

pub struct Sites {
    module: Module,
    pub strings: Strings,
    pub sites: Vec<Site>,
    pub functions: Vec<Function>,
    /// Functions that debug info describes, and those that only have a symbol.
    by_subprogram: HashMap<Node, FunctionIndex>,
    by_value: HashMap<Value, FunctionIndex>,
    /// Plain sites by description, calls of inlined functions by location.
    shared: HashMap<[u32; 7], SiteIndex>,
    inlined: HashMap<Node, SiteIndex>,
}

impl Sites {
    pub fn new(module: Module) -> Sites {
        Sites {
            module,
            strings: Strings::new(),
            sites: Vec::new(),
            functions: Vec::new(),
            by_subprogram: HashMap::new(),
            by_value: HashMap::new(),
            shared: HashMap::new(),
            inlined: HashMap::new(),
        }
    }

    /// The site of a hook that reports an access.
    pub fn of_access(&mut self, place: Place, access: &Access) -> SiteIndex {
        let name = access.address().and_then(|a| names::name_of(self.module, a, access.whole()));
        self.of_instruction(place, access.site_kind(), name)
    }

    /// The site of an instruction; `name` is what it accesses, if it accesses memory.
    pub fn of_instruction(&mut self, place: Place, kind: SiteKind, name: Option<Named>) -> SiteIndex {
        let name = name.map_or(0, |n| self.strings.offset_of_pair(&n.text, &n.code));
        let site = match place.location {
            Some(location) => self.describe(location, kind, name),
            None => self.without_location(place.function, kind, name),
        };
        if matches!(kind, SiteKind::Load | SiteKind::Store | SiteKind::Loop) {
            self.share(site)
        } else {
            self.add(site)
        }
    }

    fn describe(&mut self, location: Node, kind: SiteKind, name: u32) -> Site {
        let scope = llvm!(LLVMDILocationGetScope(location.0));
        let inlined_at = node(llvm!(LLVMDILocationGetInlinedAt(location.0)));
        let function = node(scope).and_then(Node::subprogram).map_or(FunctionIndex(0), |s| self.inlined_function(s));
        Site {
            id: 0,
            line: llvm!(LLVMDILocationGetLine(location.0)),
            column: llvm!(LLVMDILocationGetColumn(location.0)),
            file: self.file_of_scope(Node(scope)),
            function: function.0,
            name,
            kind: kind as u32,
            inlined_at: inlined_at.map_or(0, |call| 1 + self.inlined_call(call).0),
        }
    }

    fn without_location(&mut self, function: Value, kind: SiteKind, name: u32) -> Site {
        let index = self.function(function);
        let file = self.functions[index.0 as usize].file;
        Site { id: 0, line: 0, column: 0, file, function: index.0, name, kind: kind as u32, inlined_at: 0 }
    }

    /// The call that a function was inlined at.
    fn inlined_call(&mut self, location: Node) -> SiteIndex {
        if let Some(&known) = self.inlined.get(&location) {
            return known;
        }
        let site = self.describe(location, SiteKind::Call, 0);
        let index = self.add(site);
        self.inlined.insert(location, index);
        index
    }

    fn add(&mut self, site: Site) -> SiteIndex {
        self.sites.push(site);
        SiteIndex(self.sites.len() as u32 - 1)
    }

    fn share(&mut self, site: Site) -> SiteIndex {
        let key = [site.line, site.column, site.file, site.function, site.name, site.kind, site.inlined_at];
        if let Some(&known) = self.shared.get(&key) {
            return known;
        }
        let index = self.add(site);
        self.shared.insert(key, index);
        index
    }

    /// The record of a function defined in this module.
    pub fn function(&mut self, function: Value) -> FunctionIndex {
        let symbol = function.name();
        match node(llvm!(LLVMGetSubprogram(function.0))) {
            Some(subprogram) => self.described_function(subprogram, Some(symbol)),
            None => self.plain_function(function, &symbol),
        }
    }

    pub fn function_record(&mut self, index: FunctionIndex) -> &mut Function {
        &mut self.functions[index.0 as usize]
    }

    fn inlined_function(&mut self, subprogram: Node) -> FunctionIndex {
        self.described_function(subprogram, None)
    }

    fn described_function(&mut self, subprogram: Node, symbol: Option<String>) -> FunctionIndex {
        if let Some(&known) = self.by_subprogram.get(&subprogram) {
            return known;
        }
        let name = qualified_name(subprogram);
        let symbol = symbol.or_else(|| subprogram.linkage_name()).unwrap_or_else(|| name.clone());
        let record = Function {
            symbol: self.strings.offset(&symbol),
            name: self.strings.offset(if name.is_empty() { &symbol } else { &name }),
            file: self.file_of_scope(subprogram),
            line: llvm!(LLVMDISubprogramGetLine(subprogram.0)),
            slots: 0,
            flags: 0,
        };
        let index = self.add_function(record);
        self.by_subprogram.insert(subprogram, index);
        index
    }

    fn plain_function(&mut self, function: Value, symbol: &str) -> FunctionIndex {
        if let Some(&known) = self.by_value.get(&function) {
            return known;
        }
        let symbol = self.strings.offset(symbol);
        let index = self.add_function(Function { symbol, name: symbol, file: 0, line: 0, slots: 0, flags: 0 });
        self.by_value.insert(function, index);
        index
    }

    fn add_function(&mut self, record: Function) -> FunctionIndex {
        self.functions.push(record);
        FunctionIndex(self.functions.len() as u32 - 1)
    }

    fn file_of_scope(&mut self, scope: Node) -> u32 {
        let Some(file) = node(llvm!(LLVMDIScopeGetFile(scope.0))) else { return 0 };
        let mut len = 0;
        let name = llvm!(LLVMDIFileGetFilename(file.0, &mut len));
        let name = bytes_to_string(name.cast(), len as usize);
        let directory = llvm!(LLVMDIFileGetDirectory(file.0, &mut len));
        let directory = bytes_to_string(directory.cast(), len as usize);
        self.strings.offset(&join(&directory, &name))
    }
}

/// The directory only counts for a relative name.
fn join(directory: &str, name: &str) -> String {
    let path =
        if directory.is_empty() { name.to_owned() } else { format!("{}/{name}", directory.trim_end_matches('/')) };
    if name.starts_with('/') { name.to_owned() } else { path.replace("/./", "/") }
}

/// `namespace::Class::function`, without parameters. A class without a name that can be called is a lambda's.
fn qualified_name(subprogram: Node) -> String {
    let mut name = subprogram.scope_name().unwrap_or_default();
    let mut scope = subprogram.parent_scope();
    if name == "operator()" && scope.is_some_and(|s| s.scope_name().is_none()) {
        name = "{lambda}".to_owned();
    }
    while let Some(outer) = scope {
        if let Some(part) = outer.scope_name() {
            name = format!("{part}::{name}");
        }
        scope = outer.parent_scope();
    }
    name
}
