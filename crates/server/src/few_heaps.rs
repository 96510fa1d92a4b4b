//! A heap for each processor, where glibc makes up to eight.
//!
//! A poll of ten thousand jobs, or a batch of submissions, takes some megabytes for a moment, each time on another thread. What one
//! heap has free is of no use to the next one, so the service would keep the most that each of them has ever held: up to half of its
//! memory. With a single one the threads would wait for each other whenever many ask at once. glibc takes this wish from the
//! environment, when a process begins (mallopt(3), `M_ARENA_MAX`).

use std::{env, ffi::OsString, io, os::unix::process::CommandExt as _, path::Path, process::Command, thread};

use tokio::signal::unix::{SignalKind, signal};

const HEAPS: &str = "MALLOC_ARENA_MAX";
/// Says that this was tried: of a program that may do more than who starts it, newer glibc takes its own wishes out of the
/// environment.
const TRIED: &str = "TAO_SLURM_FEW_HEAPS";
/// Where there are more processors, few threads want memory at the same moment.
const MOST: usize = 4;

/// Begins this program again, as the same process, with few heaps. Returns only if that is so already, or is somebody's own wish, or
/// cannot be done, which costs memory, and what [`survive_broken_pipes`] gives back.
pub(crate) fn begin_again_with_it() -> Option<io::Error> {
    if [HEAPS, TRIED].iter().any(|name| env::var_os(name).is_some()) {
        return None;
    }
    let processors = thread::available_parallelism().ok()?.get();
    let mut command = with_heaps(processors.min(MOST), &env::current_exe().ok()?, env::args_os())?;
    Some(command.exec())
}

/// What was about to become another program ends by a client that hangs up, or by a log that nobody reads: SIGPIPE is as it would be for
/// that one (`CommandExt::exec`). A handler that does nothing makes such a write an error again. To be called on the runtime.
pub(crate) fn survive_broken_pipes() -> io::Result<()> {
    // The handler stays when this is dropped.
    signal(SignalKind::pipe()).map(drop)
}

/// None if the program was started by another one, as by a loader: that would be begun again in its place.
fn with_heaps(heaps: usize, program: &Path, args: impl IntoIterator<Item = OsString>) -> Option<Command> {
    let mut args = args.into_iter();
    let called = args.next()?;
    if Path::new(&called).file_name() != program.file_name() {
        return None;
    }
    let mut command = Command::new(program);
    command.arg0(called).args(args).env(HEAPS, heaps.to_string()).env(TRIED, "1");
    Some(command)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn of(program: &str, args: &[&str]) -> Option<Command> {
        with_heaps(2, Path::new(program), args.iter().map(Into::into))
    }

    #[test]
    fn it_begins_again_as_it_was_called() {
        let command = of("/usr/bin/tao-slurm", &["tao-slurm", "serve", "--role=api"]).unwrap();
        assert_eq!(command.get_program(), "/usr/bin/tao-slurm");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["serve", "--role=api"]);
        let told: Vec<_> = command.get_envs().collect();
        let wanted = [(HEAPS, "2"), (TRIED, "1")];
        assert_eq!(told, wanted.map(|(name, value)| (OsStr::new(name), Some(OsStr::new(value)))));
    }

    #[test]
    fn what_was_started_by_another_program_is_left_alone() {
        assert!(of("/lib64/ld-linux-x86-64.so.2", &["./tao-slurm", "serve"]).is_none());
        assert!(of("/usr/bin/tao-slurm", &[]).is_none());
    }
}
