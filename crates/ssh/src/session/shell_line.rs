//! The one line that the login shell gets.
//!
//! `sshd` passes it to the account's own shell, which need not be a POSIX shell: csh expands `!` and fails
//! on newlines inside single quotes, fish interprets some backslashes. So the script is encoded in
//! characters that mean the same to every shell, and bash decodes it without starting a process.

use std::fmt::Write;

/// The longest encoded script that goes on the line. libssh2 limits a packet to 35,000 bytes.
const LONGEST_LINE: usize = 24 * 1024;

/// A line for the login shell, and the bytes that precede the program's own input on stdin.
pub(crate) struct ShellLine {
    pub(crate) line: String,
    pub(crate) stdin_prefix: Vec<u8>,
}

/// The line that runs `script` in bash.
///
/// A script that is too long for one line is sent on stdin, before the input. A lost connection could cut
/// it there, so it ends with the boundary in a comment and does not run without it.
pub(crate) fn shell_line(boundary: &str, script: &str) -> ShellLine {
    let encoded = encoded(script);
    if encoded.len() <= LONGEST_LINE {
        let line = format!("bash --noprofile --norc -c 'printf -v __s %b \"$0\"; eval \"$__s\"' '{encoded}'");
        return ShellLine { line, stdin_prefix: Vec::new() };
    }
    let sent = format!("{script}\n#{boundary}");
    let line = format!(
        "bash --noprofile --norc -c '__s=$(head -c {}); case $__s in *{boundary}) eval \"$__s\";; esac'",
        sent.len()
    );
    ShellLine { line, stdin_prefix: sent.into_bytes() }
}

/// Encodes the text for `printf %b`: plain characters unchanged, the others as `\xHH`.
fn encoded(text: &str) -> String {
    let mut line = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b" _./,:=@%+-".contains(&byte) {
            line.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(line, "\\x{byte:02x}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::framing::random_boundary;
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    fn run_by(shell: &str, line: &ShellLine) -> Option<Vec<u8>> {
        let mut process = Command::new(shell);
        process.args(["-c", &line.line]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process.spawn().ok()?;
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        stdin.write_all(&line.stdin_prefix).expect("the shell reads");
        drop(stdin);
        Some(child.wait_with_output().expect("the shell ends").stdout)
    }

    fn run_by_sh(line: &ShellLine) -> Vec<u8> {
        run_by("sh", line).expect("sh starts")
    }

    #[test]
    fn only_characters_without_meaning_reach_the_login_shell() {
        let line =
            shell_line(&random_boundary(), "a 'b' \"c\" $d `e` !f \\ g\n#h ~ * ; & | < > \u{e9}\t").line;
        let encoded = line.rsplit_once(" '").expect("the last argument").1.trim_end_matches('\'');
        assert!(
            encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b" _./,:=@%+-\\".contains(&b)),
            "{line}"
        );
        assert!(!line.contains('!') && !line.contains('\n'), "{line}");
    }

    #[test]
    fn a_long_script_is_sent_on_stdin() {
        let script = format!("printf %s '{}'", "x".repeat(200_000));
        let line = shell_line(&random_boundary(), &script);
        assert!(line.line.len() < 200 && line.stdin_prefix.len() > 200_000);
        assert_eq!(run_by_sh(&line).len(), 200_000);
    }

    #[test]
    fn a_truncated_long_script_does_not_run() {
        let mut line = shell_line(&random_boundary(), &format!("echo ran\n: '{}'", "x".repeat(200_000)));
        line.stdin_prefix.truncate(50);
        assert_eq!(run_by_sh(&line), b"");
        line.stdin_prefix.clear();
        assert_eq!(run_by_sh(&line), b"");
    }

    #[test]
    fn every_installed_login_shell_passes_the_script_on_unchanged() {
        let text: String =
            (1..=127).map(char::from).chain("\u{e9}!!\n!x '\\'' \\\\ $HOME `id` \n\n".chars()).collect();
        let quoted = shlex::try_quote(&text).expect("no NUL").into_owned();
        for length in [0, 200_000] {
            let script = format!("printf %s {quoted}; : {}", "x".repeat(length));
            let line = shell_line(&random_boundary(), &script);
            assert_eq!(run_by_sh(&line), text.as_bytes());
            for shell in ["bash", "dash", "ksh", "zsh", "csh", "tcsh", "fish"] {
                let arrived = run_by(shell, &line);
                assert!(
                    arrived.is_none_or(|arrived| arrived == text.as_bytes()),
                    "{shell} changed the script"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]
        #[test]
        fn any_text_arrives_unchanged(text in "[^\0]{0,200}") {
            let quoted = shlex::try_quote(&text).expect("no NUL");
            let line = shell_line(&random_boundary(), &format!("printf %s {quoted}"));
            prop_assert_eq!(run_by_sh(&line), text.as_bytes());
        }
    }
}
