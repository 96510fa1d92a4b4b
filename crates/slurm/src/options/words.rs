//! Words of sbatch's options. The rules are narrower than Slurm's, so that no word needs quotes in an `#SBATCH` line.

use crate::{names::text_type::word_type, time::wall_time::seconds_of};

/// A word that begins with a letter, a digit or `_`, of these and the given characters.
fn is_word(text: &str, more: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(plain) && text.chars().all(|c| plain(c) || more.contains(c))
}

word_type!(
    /// A quality of service (`--qos`): `[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}`.
    Qos, "QOS", "1 to 64 of A-Z a-z 0-9 _ . + -, starting with a letter, digit or _", max 64,
    |text| is_word(text, ".+-")
);

word_type!(
    /// One or more comma-separated reservations (`--reservation`).
    Reservation, "reservation", "one or more names of A-Z a-z 0-9 _ . : + -, separated by commas", max 256,
    |text| text.split(',').all(|name| is_word(name, ".:+-"))
);

word_type!(
    /// The name of a generic resource, such as `gpu`, `mps` or `shard`.
    GresName, "resource name", "1 to 64 of A-Z a-z 0-9 _ -, starting with a letter, digit or _", max 64,
    |text| is_word(text, "-") && text.contains(|c: char| c.is_ascii_alphabetic())
);

word_type!(
    /// The type of a generic resource, such as `a100` or `1g.5gb`. It has a letter, because `gpu:8` is a count.
    GresType, "resource type", "1 to 64 of A-Z a-z 0-9 _ . -, with a letter", max 64,
    |text| is_word(text, ".-") && text.contains(|c: char| c.is_ascii_alphabetic())
);

word_type!(
    /// Licenses (`--licenses`): `matlab:2,ansys@server:1`; separated by `|`, one of them is enough.
    Licenses, "list of licenses", "NAME, NAME:COUNT or NAME@SERVER:COUNT, separated by commas", max 500,
    |text| !(text.contains(',') && text.contains('|')) && text.split([',', '|']).all(is_license)
);

word_type!(
    /// The most leaf switches of a job, and how long it waits for so few (`--switches`): `2` or `2@01:00:00`.
    Switches, "number of switches", "COUNT or COUNT@TIME, such as 1@00:30:00", max 64,
    |text| {
        let (count, wait) = text.split_once('@').unwrap_or((text, "1"));
        is_count(count) && seconds_of(wait).is_some()
    }
);

word_type!(
    /// A plugin for MPI (`srun --mpi`), as `srun --mpi=list` names it: `[a-z0-9_]{1,32}`.
    MpiPlugin, "plugin of MPI", "1 to 32 of a-z 0-9 _, such as `pmix`; `srun --mpi=list` lists them", max 32,
    |text| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
);

fn is_count(text: &str) -> bool {
    (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0')
}

fn is_license(text: &str) -> bool {
    let (name, count) = text.split_once(':').unwrap_or((text, "1"));
    let (name, server) = name.split_once('@').unwrap_or((name, "server"));
    is_word(name, ".-") && is_word(server, ".-") && is_count(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("matlab" => true)]
    #[test_case("matlab:2,ansys@db.example:1" => true)]
    #[test_case("a|b" => true)]
    #[test_case("a,b|c" => false ; "all and one of")]
    #[test_case("a:0" => false)]
    #[test_case("a@" => false ; "no server")]
    #[test_case("" => false)]
    #[test_case("a b" => false)]
    fn licenses_are_a_list(text: &str) -> bool {
        text.parse::<Licenses>().is_ok()
    }

    #[test_case("1" => true)]
    #[test_case("2@01:00:00" => true)]
    #[test_case("1@1-0" => true ; "a day")]
    #[test_case("0" => false)]
    #[test_case("1@" => false)]
    #[test_case("1@soon" => false)]
    fn switches_are_a_count_and_perhaps_a_time(text: &str) -> bool {
        text.parse::<Switches>().is_ok()
    }

    #[test]
    fn a_type_is_never_a_count() {
        assert!("8".parse::<GresType>().is_err() && "1g.5gb".parse::<GresType>().is_ok());
        assert!("nvidia_a100-sxm4-80gb".parse::<GresType>().is_ok());
    }

    #[test]
    fn reservations_may_be_several() {
        assert!("maint_1,course:2".parse::<Reservation>().is_ok());
        assert!("a,".parse::<Reservation>().is_err() && "-x".parse::<Reservation>().is_err());
    }

    proptest! {
        #[test]
        fn what_parses_needs_no_quoting(text in "[ -~\n\t\r]{0,20}|[a-z0-9:,@|.]{0,12}") {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-:,@|".contains(c);
            macro_rules! check {
                ($($name:ident),*) => {$(
                    if let Ok(word) = text.parse::<$name>() {
                        prop_assert!(word.as_str().chars().all(plain) && !word.as_str().starts_with('-'));
                        prop_assert_eq!(word.to_string(), text.clone());
                    }
                )*};
            }
            check!(Qos, Reservation, GresName, GresType, Licenses, Switches, MpiPlugin);
        }
    }
}
