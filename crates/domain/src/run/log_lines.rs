//! Lines of a log for people: untrusted, so without control characters, and cut.

use std::sync::LazyLock;

use regex::Regex;

/// How many of the last lines are shown.
const SHOWN_LINES: usize = 5;
/// How much of a line is shown, in characters.
const SHOWN_CHARS: usize = 200;

/// A line without control characters, of at most so many characters.
pub(crate) fn printable(line: &str, most: usize) -> String {
    line.chars().take(most).map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Whether a log has a line that says something about its end.
pub(crate) fn tells(log: &[u8]) -> bool {
    String::from_utf8_lossy(log).lines().map(str::trim_end).any(|line| !line.is_empty() && !is_cleanup(line))
}

/// The last lines of a log, without those that say nothing about its end.
pub(crate) fn last_lines(log: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let telling: Vec<&str> = lines.iter().copied().filter(|line| !is_cleanup(line)).collect();
    let lines = if telling.is_empty() { lines } else { telling };
    lines[lines.len().saturating_sub(SHOWN_LINES)..].iter().map(|line| printable(line, SHOWN_CHARS)).collect()
}

/// Whether Pyxis or Slurm prints the line after every failure of a container, unsquashfs after its success, or Slurm and bash when a step
/// is ended.
fn is_cleanup(line: &str) -> bool {
    static CLEANUP: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // A test matches with it, so it is valid.
        Regex::new(concat!(
            r"(?:^|: )(?:spank: required plugin \S+: \w+\(\) failed with rc=|Failed to invoke spank plugin stack|pyxis:",
            r"(?: child \d+ failed with error code| printing enroot log file:| container was not started successfully by",
            r"| couldn't start container$|\s*$|\s+\[INFO\] Extracting squashfs|\s+Parallel unsquashfs:",
            r"|\s+\d+ inodes \(\d+ blocks\) to write|\s+created \d+ \w+$|\s+\[[=|/\\ -]+\] *\d+/\d+))",
            r"|^slurmstepd-\S+: error: \*\*\* STEP \S+ ON \S+ CANCELLED AT \S+ \*\*\*$|^Terminated$",
        ))
        .ok()
    });
    CLEANUP.as_ref().is_some_and(|cleanup| cleanup.is_match(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded failure: the file of the image does not exist.
    const MISSING: &str = "\
epoch 3 of an earlier run
slurmstepd-node01: error: pyxis: child 4032 failed with error code: 1
slurmstepd-node01: error: pyxis: failed to create container filesystem for image: /lustre/images/none.sqsh
slurmstepd-node01: error: pyxis: printing enroot log file:
srun: error: node01: task 0: Exited with exit code 1
slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/images/none.sqsh
slurmstepd-node01: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
slurmstepd-node01: error: Failed to invoke spank plugin stack
slurmstepd-node01: error: pyxis: child 4048 failed with error code: 1
";

    #[test]
    fn the_clean_up_of_pyxis_does_not_hide_the_cause() {
        let shown = last_lines(MISSING.as_bytes());
        assert_eq!(
            shown,
            [
                "epoch 3 of an earlier run",
                "slurmstepd-node01: error: pyxis: failed to create container filesystem for image: /lustre/images/none.sqsh",
                "srun: error: node01: task 0: Exited with exit code 1",
                "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/images/none.sqsh",
            ]
        );
    }

    #[test]
    fn the_log_of_unsquashfs_does_not_hide_the_cause() {
        let log = "\
slurmstepd-node02: error: pyxis: --container-mounts: source path does not exist: /nope
slurmstepd-node02: error: pyxis: couldn't create enroot start configuration script
slurmstepd-node02: error: pyxis: printing enroot log file:
slurmstepd-node02: error: pyxis:     [INFO] Extracting squashfs filesystem...
slurmstepd-node02: error: pyxis:     Parallel unsquashfs: Using 2 processors
slurmstepd-node02: error: pyxis:     272 inodes (19 blocks) to write
slurmstepd-node02: error: pyxis:     \n\
slurmstepd-node02: error: pyxis:     [===================|] 287/287 100%
slurmstepd-node02: error: pyxis:     created 4 files
slurmstepd-node02: error: pyxis:     created 0 hardlinks
slurmstepd-node02: error: pyxis: container was not started successfully by another task
slurmstepd-node02: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
slurmstepd-node02: error: Failed to invoke spank plugin stack
";
        assert_eq!(last_lines(log.as_bytes()).len(), 2);
        assert!(last_lines(log.as_bytes())[0].ends_with("source path does not exist: /nope"));
    }

    #[test]
    fn a_log_of_nothing_else_is_shown_as_it_is() {
        let log = "slurmstepd: error: Failed to invoke spank plugin stack\n";
        assert_eq!(last_lines(log.as_bytes()), [log.trim_end()]);
    }

    #[test]
    fn lines_of_a_program_are_never_left_out() {
        let log = "created 3 files\npyxis is a plugin\n[INFO] Extracting squashfs\n[===] 3/3\nchild 3 failed with error code: 1\n";
        assert_eq!(last_lines(log.as_bytes()).len(), 5);
    }

    #[test]
    fn a_line_is_cut_and_printable() {
        assert_eq!(printable("a\x1b[31m\tbcd", 8), "a\u{fffd}[31m\tb");
    }
}
