use proptest::prelude::*;
use test_case::test_case;

use super::*;

#[test_case("tao-job-0198c0de-0000-7000-8000-000000000001-r2"; "a token")]
#[test_case("-"; "a dash")]
fn a_job_name_is_accepted(text: &str) {
    assert_eq!(text.parse::<JobName>().unwrap().as_str(), text);
}

#[test_case(""; "empty")]
#[test_case("a,b"; "comma splits --name")]
#[test_case("a|b"; "bar splits -P")]
#[test_case("a b"; "space")]
#[test_case("a\n#SBATCH --uid=0"; "newline")]
#[test_case("é"; "not ascii")]
fn a_job_name_is_refused(text: &str) {
    assert!(text.parse::<JobName>().is_err());
}

#[test]
fn lengths_are_limited() {
    assert!("a".repeat(128).parse::<JobName>().is_ok());
    assert!("a".repeat(129).parse::<JobName>().is_err());
    assert!("a".repeat(32).parse::<UserName>().is_ok());
    assert!("a".repeat(33).parse::<UserName>().is_err());
    assert!("a".repeat(64).parse::<Partition>().is_ok());
    assert!("a".repeat(65).parse::<Partition>().is_err());
    assert!("a".repeat(63).parse::<NodeName>().is_ok());
    assert!("a".repeat(64).parse::<NodeName>().is_err());
    assert!("a".repeat(128).parse::<EnvKey>().is_ok());
    assert!("a".repeat(129).parse::<EnvKey>().is_err());
}

#[test]
fn a_name_that_looks_like_an_option_is_refused_where_it_would_be_one() {
    assert!("-p".parse::<Account>().is_err());
    assert!("--x".parse::<Partition>().is_err());
    assert!("-w".parse::<NodeName>().is_err());
    assert!("-l".parse::<UserName>().is_err());
}

#[test]
fn the_error_says_what_is_allowed() {
    let error = "Root".parse::<UserName>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid user name: 1 to 32 of a-z 0-9 _ -, not starting with a digit or -; got \"Root\""
    );
}

const HOSTILE: &[char] = &[
    '|', ',', ' ', '\n', '\r', '\t', '\0', '\'', '"', '`', '$', ';', '&', '<', '>', '(', '%', '\\', '/', '*',
    'é',
];

proptest! {
    #[test]
    fn an_accepted_name_comes_back_the_same_and_holds_nothing_hostile(text in any::<String>()) {
        macro_rules! check {
            ($($name:ident),*) => {$(
                if let Ok(name) = text.parse::<$name>() {
                    prop_assert_eq!(name.to_string(), text.clone());
                    prop_assert!(!name.as_str().contains(HOSTILE));
                }
            )*};
        }
        check!(JobName, UserName, Account, Partition, NodeName, EnvKey);
    }

    #[test]
    fn a_hostile_character_anywhere_spoils_a_good_name(
        before in "[a-z]{0,9}", hostile in proptest::sample::select(HOSTILE), after in "[a-z]{0,9}",
    ) {
        let text = format!("{before}{hostile}{after}");
        prop_assert!(text.parse::<JobName>().is_err());
        prop_assert!(text.parse::<UserName>().is_err());
        prop_assert!(text.parse::<Account>().is_err());
        prop_assert!(text.parse::<Partition>().is_err());
        prop_assert!(text.parse::<NodeName>().is_err());
        prop_assert!(text.parse::<EnvKey>().is_err());
    }

    #[test]
    fn well_formed_names_round_trip(
        job in "[A-Za-z0-9_-]{1,128}", user in "[a-z_][a-z0-9_-]{0,31}", part in "[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}",
        node in "[A-Za-z0-9][A-Za-z0-9.-]{0,62}", key in "[A-Za-z_][A-Za-z0-9_]{0,127}",
    ) {
        let (a, b, c) = (job.parse::<JobName>(), user.parse::<UserName>(), part.parse::<Account>());
        prop_assert_eq!(a.unwrap().to_string(), job);
        prop_assert_eq!(b.unwrap().to_string(), user);
        prop_assert_eq!(c.unwrap().to_string(), part.clone());
        prop_assert_eq!(part.parse::<Partition>().unwrap().to_string(), part);
        prop_assert_eq!(node.parse::<NodeName>().unwrap().to_string(), node);
        prop_assert_eq!(key.parse::<EnvKey>().unwrap().to_string(), key);
    }
}
