//! Repeats what failed, because a slow cluster on a loaded machine is not a finding; and prints errors on one line.

const TRIES: usize = 5;

/// Acts until it succeeds, at most five times. The last error is returned, the others are printed. `pause` runs between two tries.
pub(crate) fn repeat<T>(act: impl Fn() -> anyhow::Result<T>, pause: impl Fn()) -> anyhow::Result<T> {
    for _ in 1..TRIES {
        match act() {
            Ok(answer) => return Ok(answer),
            Err(error) => eprintln!("chaos: {}; retrying", one_line(&error)),
        }
        pause();
    }
    act()
}

/// An error with its causes and without line breaks.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_failure_is_repeated_and_the_last_one_is_returned() {
        let (asked, paused) = (Cell::new(0), Cell::new(0));
        let asking = |works_at: usize| {
            asked.set(0);
            paused.set(0);
            let act = || {
                asked.set(asked.get() + 1);
                if asked.get() == works_at { Ok("12 tao-job-x") } else { Err(anyhow!("try {}", asked.get())) }
            };
            let answer = repeat(act, || paused.set(paused.get() + 1));
            (answer.map_err(|error| error.to_string()), asked.get(), paused.get())
        };
        assert_eq!(asking(1), (Ok("12 tao-job-x"), 1, 0));
        assert_eq!(asking(5), (Ok("12 tao-job-x"), 5, 4));
        assert_eq!(asking(6), (Err("try 5".to_owned()), 5, 4));
    }

    #[test]
    fn an_error_of_several_lines_is_printed_on_one() {
        let error =
            Err::<(), _>(anyhow!("exit status: 255: Read from remote host:\n  Connection reset by peer\n"));
        let error = error.context("squeue at the end").unwrap_err();
        assert_eq!(
            one_line(&error),
            "squeue at the end: exit status: 255: Read from remote host:; Connection reset by peer"
        );
    }
}
