//! Ctrl-C while a command watches: what goes on without it, and how to come back.

use std::{process, thread};

use super::output::note;

/// The exit code of a program that SIGINT ended, as shells count it.
const EXIT_INTERRUPTED: i32 = 130;

/// From now on Ctrl-C prints the text and ends the program. A second call replaces nothing: the first text stays.
pub(super) fn say(text: String) {
    let wait = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        // Without a handler Ctrl-C ends the program as usual.
        let Ok(runtime) = runtime else { return };
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            note(&format!("\n{text}"));
            process::exit(EXIT_INTERRUPTED);
        }
    };
    thread::spawn(wait);
}
