//! Names for scripts, command lines and queries. Each type guarantees that its text is harmless.
//!
//! The rules are narrower than Slurm's. `squeue --name a,b` splits on commas, `sacct -P` splits on `|`, and a newline ends
//! an `#SBATCH` line. A name without these characters needs no quoting.

use super::text_type::word_type;

fn is_name(text: &str, first: fn(u8) -> bool, rest: fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(first) && text.bytes().all(rest)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-'
}

word_type!(
    /// The name of a job in Slurm: `[A-Za-z0-9_-]{1,128}`. Our names are unique, so they find a submission.
    JobName, "job name", "1 to 128 of A-Z a-z 0-9 _ -", max 128,
    |text| is_name(text, |b| is_word(b) || b == b'-', |b| is_word(b) || b == b'-')
);

word_type!(
    /// The name of a component of a job: `[a-z][a-z0-9_-]{0,31}`. Its step, its markers and its log directory have it.
    ComponentName, "component name", "1 to 32 of a-z 0-9 _ -, starting with a letter", max 32,
    |text| is_name(text, |b| b.is_ascii_lowercase(), is_lower)
);

word_type!(
    /// A login name on the cluster: `[a-z_][a-z0-9_-]{0,31}`, as `useradd(8)` recommends.
    UserName, "user name", "1 to 32 of a-z 0-9 _ -, not starting with a digit or -", max 32,
    |text| is_name(text, |b| b.is_ascii_lowercase() || b == b'_', is_lower)
);

word_type!(
    /// A Slurm account (`sbatch --account`): `[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}`.
    Account, "account", "1 to 64 of A-Z a-z 0-9 _ . + -, starting with a letter, digit or _", max 64,
    |text| is_name(text, is_word, |b| is_word(b) || matches!(b, b'.' | b'+' | b'-'))
);

word_type!(
    /// One Slurm partition: `[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}`.
    Partition, "partition", "1 to 64 of A-Z a-z 0-9 _ . + -, starting with a letter, digit or _", max 64,
    |text| is_name(text, is_word, |b| is_word(b) || matches!(b, b'.' | b'+' | b'-'))
);

word_type!(
    /// One node, not a range: `[A-Za-z0-9][A-Za-z0-9.-]{0,62}`.
    NodeName, "node name", "1 to 63 of A-Z a-z 0-9 . -, starting with a letter or digit", max 63,
    |text| is_name(text, |b| b.is_ascii_alphanumeric(), |b| b.is_ascii_alphanumeric() || b".-".contains(&b))
);

word_type!(
    /// The name of an environment variable: `[A-Za-z_][A-Za-z0-9_]{0,127}`.
    EnvKey, "environment variable name", "1 to 128 of A-Z a-z 0-9 _, not starting with a digit", max 128,
    |text| is_name(text, |b| b.is_ascii_alphabetic() || b == b'_', is_word)
);

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
