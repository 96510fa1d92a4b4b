//! The frame around a program's output: how an answer is told from noise, and a whole one from a part.
//!
//! Two facts make it necessary. Login shells, banners and start-up files write to the same streams as
//! the program. And the exit status that libssh2 reports is 0 when none arrived: after a lost link, a
//! killed session process, a server-side channel timeout. So a wrapper prints a begin mark, runs the
//! program, and prints an end mark with the code. The marks hold a random boundary, new for each call.
//! Without the end mark nothing is believed.
//!
//! The script never contains a mark in one piece, so a login shell that echoes the command it is given
//! does not forge one. Read on in `reader` for the other side.

mod reader;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

pub(crate) use reader::{Ending, Excess, FrameError, FrameReader};

/// Seconds between asking a program to end at its deadline and killing it.
const KILL_AFTER: u64 = 5;

/// 128 random bits, written in hexadecimal.
#[derive(Clone, Copy)]
pub(crate) struct Boundary(u128);

impl Boundary {
    pub(crate) fn random() -> Self {
        Self(rand::random())
    }

    #[cfg(fuzzing)]
    pub(crate) fn fixed(bits: u128) -> Self {
        Self(bits)
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The longest deadline, in seconds. A longer one would overflow the arithmetic somewhere on the way.
const LONGEST_DEADLINE: u64 = 7 * 24 * 3600;

/// The deadline in whole seconds as the remote `timeout` gets it: rounded up, at least one, at most a week.
pub(crate) fn remote_seconds(deadline: Duration) -> u64 {
    deadline.as_secs().saturating_add(u64::from(deadline.subsec_nanos() > 0)).clamp(1, LONGEST_DEADLINE)
}

/// The bash script that runs `program` inside marks. `None` when the program contains a NUL byte.
///
/// `timeout` bounds the program when we are no longer there to do it. It ends with 124 when the time was
/// up, and so may the program itself: only together with the elapsed time does the code mean a deadline.
/// `BASH_ENV` goes, or the file it names would write inside the marks.
pub(crate) fn script(boundary: Boundary, program: &str, seconds: u64) -> Option<String> {
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

fn begin_mark(boundary: Boundary) -> Vec<u8> {
    format!("BEGIN-{boundary}\n").into_bytes()
}

fn end_mark(boundary: Boundary) -> Vec<u8> {
    format!("\nEND-{boundary} ").into_bytes()
}
