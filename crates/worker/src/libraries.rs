//! Shared libraries that a running program has loaded and of whose code nothing is seen.

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object};
use std::collections::BTreeSet;
use std::path::Path;
use symdpor_abi::module::MODULE_SECTION;

/// Those of the system and the compiler: what they do for threads is taken over or known.
const KNOWN: [&str; 14] = [
    "ld-linux",
    "libc++.so",
    "libc++abi.so",
    "libc.so",
    "libdl.so",
    "libgcc_s.so",
    "libm.so",
    "libpthread.so",
    "libresolv.so",
    "librt.so",
    "libstdc++.so",
    "libsymdpor_rt.so",
    "libunwind.so",
    "libutil.so",
];

/// The names of the others that were not compiled with the pass.
pub(crate) fn unseen(process: u32) -> Vec<String> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    let paths: BTreeSet<&Path> = code_in(&maps).filter(|path| *path != program).collect();
    let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let unknown = |name: &String| !KNOWN.iter().any(|known| name.starts_with(known));
    paths.into_iter().filter(|path| !is_instrumented(path)).filter_map(name).filter(unknown).collect()
}

/// The files that code is mapped from.
fn code_in(maps: &str) -> impl Iterator<Item = &Path> {
    maps.lines().filter_map(|line| {
        let rights = line.split_ascii_whitespace().nth(1)?;
        let path = &line[line.find('/')?..];
        rights.contains('x').then_some(Path::new(path))
    })
}

fn is_instrumented(library: &Path) -> bool {
    let bytes = std::fs::read(library).unwrap_or_default();
    let file = ElfFile64::<LittleEndian>::parse(&*bytes);
    file.is_ok_and(|file| file.section_by_name(MODULE_SECTION).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_code_by_their_paths() {
        let maps = "55-56 r-xp 0 08:01 1   /a program\n57-58 rw-p 0 08:01 1   /b\n59-60 r-xp 0 0:0 0   [vdso]\n61-62 r-xp 0 0:0 0\n";
        assert_eq!(code_in(maps).collect::<Vec<_>>(), [Path::new("/a program")]);
    }

    #[test]
    fn this_test_has_nothing_unknown() {
        assert!(unseen(std::process::id()).is_empty());
    }
}
