//! Ctrl-C while a command watches: what goes on without it, and how to come back.

use std::{
    process,
    sync::{Mutex, PoisonError},
    thread,
};

use super::output::note;

/// The exit code of a program that SIGINT ended, as shells count it.
const EXIT_INTERRUPTED: i32 = 130;

/// What Ctrl-C prints; none before the first call of [`say`].
static TEXT: Mutex<Option<String>> = Mutex::new(None);

/// From now on Ctrl-C prints this text and ends the program.
pub(super) fn say(text: String) {
    let before = TEXT.lock().unwrap_or_else(PoisonError::into_inner).replace(text);
    if before.is_none() {
        thread::spawn(wait);
    }
}

fn wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    // Without a handler Ctrl-C ends the program as usual.
    let Ok(runtime) = runtime else { return };
    if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
        let text = TEXT.lock().unwrap_or_else(PoisonError::into_inner).take();
        note(&format!("\n{}", text.unwrap_or_default()));
        process::exit(EXIT_INTERRUPTED);
    }
}
