//! The frame around a program's output: it separates the answer from noise, and a complete answer from a
//! part of one.
//!
//! Two facts make it necessary. Login shells, banners and start-up files write to the same streams as
//! the program. And libssh2 reports exit status 0 if none arrived: after a lost connection, a killed session
//! process, or a channel timeout on the server. So a wrapper prints a begin mark, runs the program, and
//! prints an end mark with the exit code. The marks contain a random boundary, new for each command. An
//! answer without the end mark is never trusted.
//!
//! The script never contains a complete mark, so a login shell that echoes its command cannot forge one.
//! `reader` reads the framed stream.

mod reader;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use reader::{Ending, Excess, FrameError, FrameReader};

/// Seconds between SIGTERM and SIGKILL for a program at its deadline.
const KILL_AFTER: u64 = 5;

/// 128 random bits in hexadecimal.
pub(crate) fn random_boundary() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// The longest deadline, in seconds. A longer one could overflow later calculations.
const LONGEST_DEADLINE: u64 = 7 * 24 * 3600;

/// The deadline in whole seconds for the remote `timeout`: rounded up, at least one, at most a week.
pub(crate) fn remote_seconds(deadline: Duration) -> u64 {
    deadline.as_secs().saturating_add(u64::from(deadline.subsec_nanos() > 0)).clamp(1, LONGEST_DEADLINE)
}

/// The bash script that runs `program` between the marks. `None` if the program contains a NUL byte.
///
/// `timeout` limits the program even if our connection is gone. It exits with 124 at the deadline, but the
/// program may exit with 124 too: only together with the elapsed time does the code mean a deadline.
/// `BASH_ENV` is unset, or the file that it names could write between the marks.
pub(crate) fn script(boundary: &str, program: &str, seconds: u64) -> Option<String> {
    let program = shlex::try_quote(program).ok()?;
    Some(format!(
        "__b={boundary}\n\
         unset -v BASH_ENV\n\
         printf 'BEGIN-%s\\n' $__b\n\
         printf 'BEGIN-%s\\n' $__b >&2\n\
         if type -P timeout >/dev/null; then\n\
         __t=$SECONDS\n\
         command timeout -k {KILL_AFTER} {seconds} bash --noprofile --norc -c {program}\n\
         __r=$?\n\
         if [ $((SECONDS - __t)) -ge {seconds} ]; then case $__r in 124|137) __r=timeout;; esac; fi\n\
         else __r=missing; fi\n\
         printf '\\nEND-%s %s\\n' $__b $__r >&2\n\
         printf '\\nEND-%s %s\\n' $__b $__r\n\
         exit 0"
    ))
}

fn begin_mark(boundary: &str) -> Vec<u8> {
    format!("BEGIN-{boundary}\n").into_bytes()
}

fn end_mark(boundary: &str) -> Vec<u8> {
    format!("\nEND-{boundary} ").into_bytes()
}
