//! The same verdicts on one CPU, and as an unprivileged user in something like a container.

mod common;

use common::build::{self, With};
use common::fixture::{self, Fixture};
use common::process;
use common::tool::{self, Request};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every fourth fixture whose count is pinned for -O2, for the sake of time, but for those that are there to be large and those with a library of their
/// own, which the copy for another user would have to follow.
fn subjects() -> Vec<Fixture> {
    let mut subjects = fixture::all();
    subjects.retain(|f| {
        let header = &f.header;
        header.executions.contains_key("source")
            && header.counts_differ.is_none()
            && header.library.is_empty()
            && header.executions["source"] <= MOST_EXECUTIONS
            && !f.name.starts_with("bench/")
    });
    let subjects: Vec<Fixture> = subjects.into_iter().step_by(4).collect();
    assert!(subjects.len() >= 150, "only {} fixtures", subjects.len());
    subjects
}

const MOST_EXECUTIONS: u64 = 2_000;

/// nobody and nogroup.
const NOBODY: u32 = 65534;

fn check(fixture: &Fixture, program: &Path, request: &Request, prepare: impl FnOnce(&mut Command)) {
    let mut request = request.clone();
    request.options.extend(fixture.header.options.iter().cloned());
    request.options.extend(["--symmetry".to_owned(), "off".to_owned()]);
    request.arguments.clone_from(&fixture.header.arguments);
    let verification =
        tool::verify_with(program, &request, prepare).unwrap_or_else(|e| panic!("{}: {e}", fixture.name));
    let summary = &verification.summary;
    let found = summary.errors.first().map_or(summary.verdict.as_str(), |e| e.kind.as_str());
    assert_eq!(found, fixture.header.verdict, "{}: {}", fixture.name, verification.ran.describe());
    assert_eq!(Some(&summary.executions), fixture.header.executions.get("source"), "{}", fixture.name);
}

#[test]
fn on_one_cpu() {
    let wrapper = ["taskset", "-c", "0"].map(str::to_owned).into();
    let request = Request { wrapper, ..Request::default() };
    for fixture in subjects() {
        let program = build::program(&fixture, "-O2", With::Pass).unwrap_or_else(|e| panic!("{e}"));
        check(&fixture, &program, &request, |_| {});
    }
}

/// The tool and the programs where everybody can read them: the repository may be in a directory that is root's own.
struct Published {
    directory: tempfile::TempDir,
}

impl Published {
    fn new() -> Published {
        let directory = tempfile::Builder::new().prefix("symdpor-test-").tempdir().expect("/tmp is writable");
        let published = Published { directory };
        published.open_to_all(published.directory.path(), 0o777);
        for name in ["symdpor", "libsymdpor.so", "libsymdpor_rt.so"] {
            published.copy(&tool::directory().join(name));
        }
        published
    }

    fn open_to_all(&self, path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    fn copy(&self, file: &Path) -> PathBuf {
        let target = self.directory.path().join(file.file_name().expect("a file"));
        std::fs::copy(file, &target).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        self.open_to_all(&target, 0o755);
        target
    }
}

/// System calls that a container's default filter refuses, and `userfaultfd`.
const REFUSED: [libc::c_long; 24] = [
    libc::SYS_userfaultfd,
    libc::SYS_personality,
    libc::SYS_perf_event_open,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_pivot_root,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_move_pages,
    libc::SYS_mbind,
];

/// A filter that answers EPERM to those and lets all else pass.
fn filter() -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (index, call) in REFUSED.iter().enumerate() {
        let to_refusal = (REFUSED.len() - index) as u8;
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        program.push(libc::sock_filter { code, jt: to_refusal, jf: 0, k: *call as u32 });
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    program
}

/// Puts the filter on the calling process.
fn install(program: &[libc::sock_filter]) -> std::io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: both calls read their arguments only; `program` lives until they return.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn contained(command: &mut Command, program: Vec<libc::sock_filter>) {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    // SAFETY: between fork and exec only system calls are made; the filter was allocated before.
    unsafe { command.pre_exec(move || install(&program)) };
}

#[test]
fn the_filter_refuses_what_it_should() {
    let mut command = Command::new("sh");
    command.args(["-c", "unshare --mount true 2>/dev/null && echo allowed || echo refused"]);
    contained(&mut command, filter());
    let ran = process::run(&mut command, tool::LIMIT);
    assert_eq!(ran.output().trim(), "refused", "{}", ran.describe());
}

#[test]
fn unprivileged_under_a_filter_like_a_containers() {
    let published = Published::new();
    let request = Request { tool: Some(published.directory.path().join("symdpor")), ..Request::default() };
    for fixture in subjects() {
        let program = build::program(&fixture, "-O2", With::Pass).unwrap_or_else(|e| panic!("{e}"));
        let program = published.copy(&program);
        let request = Request { directory: Some(published.directory.path().to_owned()), ..request.clone() };
        check(&fixture, &program, &request, |command| contained(command, filter()));
    }
}
