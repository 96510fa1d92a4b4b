//! Every reason that the two Slurms of the sandbox can give is explained. The lists are the strings of their libraries:
//! `strings libslurmfull.so`, from `PartitionNodeLimit` on, and the words that squeue(1) has beside them.

use slurm::pending_reason::explain;

#[test]
fn every_reason_that_slurm_knows_is_explained() {
    for (version, list) in [("22.05", include_str!("22.05.txt")), ("24.11", include_str!("24.11.txt"))] {
        let dark: Vec<_> = list.lines().filter(|reason| explain(reason).is_none()).collect();
        assert!(list.lines().count() > 150, "{version}: the list is short");
        assert!(dark.is_empty(), "Slurm {version} also says {dark:?}");
    }
}

#[test]
fn every_explanation_is_a_part_of_a_sentence_and_says_what_to_do() {
    for reason in include_str!("24.11.txt").lines() {
        let known = explain(reason).unwrap();
        let meaning = &known.meaning;
        assert!(!meaning.ends_with('.') && meaning.starts_with(char::is_alphabetic), "{reason}: {meaning}");
        assert!(known.advice.ends_with('.'), "{reason}: {}", known.advice);
    }
}
