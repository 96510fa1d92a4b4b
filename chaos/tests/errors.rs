//! Errors of the tool itself.

use std::process::Command;

#[test]
fn an_error_is_one_line_without_a_stack_trace() {
    let chaos = Command::new(env!("CARGO_BIN_EXE_chaos"))
        .args(["--faults", "nonsense"])
        .env("RUST_BACKTRACE", "1")
        // Nothing starts: a sandbox would be reported here.
        .env("SANDBOX_DIR", "/nonexistent")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&chaos.stderr);
    assert_eq!((chaos.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.starts_with("chaos: unknown fault \"nonsense\"; the faults are: kill API, "), "{error}");
}
