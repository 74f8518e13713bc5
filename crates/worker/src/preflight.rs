//! Looks at the program's file before it is started, so that what cannot work is said in plain words.
//!
//! A program without a `.symdpor` section may still have instrumented libraries of its own: it is started, and
//! refused only if no module has registered by its first answer.

use crate::error::PreflightError;
use crate::process::is_executable;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, elf};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use symdpor_abi::module::{MODULE_MAGIC, MODULE_SECTION};

/// A program that can be started.
#[derive(Debug)]
pub struct Checked {
    pub path: PathBuf,
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// Whether the file itself has instrumented code.
    pub instrumented: bool,
}

/// Finds the program as a shell does and checks it.
pub fn check(program: &OsStr) -> Result<Checked, PreflightError> {
    let path = find(program, std::env::var_os("PATH").as_deref())?;
    let metadata = fs::metadata(&path).map_err(|e| PreflightError::Unreadable(path.clone(), e))?;
    if metadata.is_dir() {
        return Err(PreflightError::Directory(path));
    }
    if !is_executable(&path) {
        return Err(PreflightError::NotExecutable(path));
    }
    let bytes = fs::read(&path).map_err(|e| PreflightError::Unreadable(path.clone(), e))?;
    let instrumented = check_file(&path, &bytes)?;
    // A library that is there but of no use for preloading is the rarer mistake: look at the file first.
    if metadata.permissions().mode() & 0o6000 != 0 {
        return Err(PreflightError::SetId(path));
    }
    Ok(Checked { path, bytes, instrumented })
}

/// With a slash it is a path; otherwise it is looked for in `PATH`.
fn find(program: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, PreflightError> {
    let path = PathBuf::from(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return match fs::metadata(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Err(PreflightError::NotFound { path, hint: String::new() }),
            Err(e) => Err(PreflightError::Unreadable(path, e)),
            Ok(_) => Ok(path),
        };
    }
    let directories = search.into_iter().flat_map(std::env::split_paths);
    let mut candidates = directories.map(|d| d.join(program));
    candidates.find(|c| c.is_file() && is_executable(c)).ok_or_else(|| not_found(path))
}

fn not_found(path: PathBuf) -> PreflightError {
    let hint = if path.is_file() && is_executable(&path) {
        format!(" in PATH (did you mean ./{}?)", path.display())
    } else {
        " in PATH".into()
    };
    PreflightError::NotFound { path, hint }
}

/// Whether the file has instrumented code of this version.
fn check_file(path: &Path, bytes: &[u8]) -> Result<bool, PreflightError> {
    if bytes.starts_with(b"#!") {
        return Err(PreflightError::Script(path.into()));
    }
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(|_| PreflightError::WrongFormat(path.into()))?;
    let header = file.elf_header();
    let kind = header.e_type(LittleEndian);
    if header.e_machine(LittleEndian) != elf::EM_X86_64 || !matches!(kind, elf::ET_EXEC | elf::ET_DYN) {
        return Err(PreflightError::WrongFormat(path.into()));
    }
    let has_loader = file.elf_program_headers().iter().any(|p| p.p_type(LittleEndian) == elf::PT_INTERP);
    if !has_loader {
        return Err(PreflightError::Static(path.into()));
    }
    if let Some(flag) = sanitizer(file.dynamic_symbols().filter_map(|s| s.name().ok())) {
        return Err(PreflightError::Sanitizer { path: path.into(), flag });
    }
    match file.section_by_name(MODULE_SECTION) {
        None => Ok(false),
        Some(section) => {
            let data = section.data().map_err(|_| PreflightError::DamagedSection(path.into()))?;
            check_versions(path, data).map(|()| true)
        }
    }
}

/// The sanitizers whose runtimes replace the allocator and the functions for threads, told by a function that each of them has.
fn sanitizer<'a>(mut symbols: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    const BY_SYMBOL: [(&str, &str); 5] = [
        ("__asan_init", "address"),
        ("__hwasan_init", "hwaddress"),
        ("__lsan_init", "leak"),
        ("__msan_init", "memory"),
        ("__tsan_init", "thread"),
    ];
    symbols.find_map(|name| BY_SYMBOL.iter().find(|(symbol, _)| *symbol == name).map(|(_, flag)| *flag))
}

/// Descriptors are aligned to eight bytes; the linker may put padding between those of different files.
fn check_versions(path: &Path, section: &[u8]) -> Result<(), PreflightError> {
    let magic = MODULE_MAGIC.to_le_bytes();
    let words = (0..section.len().saturating_sub(11)).step_by(8);
    let mut found_any = false;
    for at in words.filter(|&at| section[at..].starts_with(&magic)) {
        found_any = true;
        let found = u32::from_le_bytes(section[at + 8..at + 12].try_into().expect("four bytes"));
        if found != symdpor_abi::PROTOCOL_VERSION {
            let ours = symdpor_abi::PROTOCOL_VERSION;
            return Err(PreflightError::OtherVersion { path: path.into(), found, ours });
        }
    }
    if found_any { Ok(()) } else { Err(PreflightError::DamagedSection(path.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    fn file(content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("prog");
        use std::io::Write;
        let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(mode).open(&path).unwrap();
        file.write_all(content).unwrap();
        (directory, path)
    }

    #[test]
    fn files_that_cannot_be_run_are_told_apart() {
        assert!(matches!(check("/nowhere/prog".as_ref()), Err(PreflightError::NotFound { .. })));
        assert!(matches!(check("no-such-program-anywhere".as_ref()), Err(PreflightError::NotFound { .. })));
        assert!(matches!(check("/tmp".as_ref()), Err(PreflightError::Directory(_))));
        let (_keep, path) = file(b"#!/bin/sh\n", 0o755);
        assert!(matches!(check(path.as_os_str()), Err(PreflightError::Script(_))));
        let (_keep, path) = file(b"hello", 0o755);
        assert!(matches!(check(path.as_os_str()), Err(PreflightError::WrongFormat(_))));
        let (_keep, path) = file(b"hello", 0o644);
        assert!(matches!(check(path.as_os_str()), Err(PreflightError::NotExecutable(_))));
        let (_keep, path) = file(b"", 0o755);
        assert!(matches!(check(path.as_os_str()), Err(PreflightError::WrongFormat(_))));
    }

    #[test]
    fn an_ordinary_program_has_no_section() {
        let checked = check("sh".as_ref()).unwrap();
        assert!(!checked.instrumented);
        assert!(checked.path.is_absolute());
    }

    #[test]
    fn every_descriptor_of_the_section_is_looked_at() {
        let path = Path::new("prog");
        let mut section = Vec::new();
        for version in [symdpor_abi::PROTOCOL_VERSION, 99] {
            section.extend(MODULE_MAGIC.to_le_bytes());
            section.extend(version.to_le_bytes());
            section.extend([0; 60]);
        }
        assert!(check_versions(path, &section[..72]).is_ok());
        assert!(matches!(check_versions(path, &section), Err(PreflightError::OtherVersion { found: 99, .. })));
        assert!(matches!(check_versions(path, &[0; 72]), Err(PreflightError::DamagedSection(_))));
        assert!(matches!(check_versions(path, &[]), Err(PreflightError::DamagedSection(_))));
    }

    #[test]
    fn sanitizers_are_told_by_what_they_export() {
        assert_eq!(sanitizer(["main", "__asan_init"].into_iter()), Some("address"));
        assert_eq!(sanitizer(["__ubsan_handle_add_overflow"].into_iter()), None);
    }

    #[test]
    fn a_program_in_the_current_directory_is_hinted_at() {
        let error = find("no-such-thing".as_ref(), None).unwrap_err();
        assert_eq!(error.to_string(), "no-such-thing: no such program in PATH");
    }
}
