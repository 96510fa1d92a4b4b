use std::collections::{BTreeMap, BTreeSet};

use remote::{Partitions, RemoteCommand};
use slurm::FailureClass;

use crate::site::Site;

const SINFO: &str = include_str!("../fixtures/22.05/sinfo.txt");
const SHOW: &str = include_str!("../fixtures/22.05/partitions.txt");

fn site() -> Site {
    let site = Site::new();
    site.write("sinfo.out", SINFO);
    site.write("show.out", SHOW);
    site.program("sinfo", "printf '%s\\n' \"$*\" >>\"$SITE/sinfo.calls\"\ncat \"$SITE/sinfo.out\"");
    site.program(
        "scontrol",
        "if [ \"$*\" = 'show config' ]; then echo 'EnforcePartLimits       = ALL'\n\
         echo 'AccountingStorageEnforce = associations,limits,qos'; echo 'ClusterName             = dgx'; echo 'MaxArraySize            = 10001'\n\
         else cat \"$SITE/show.out\"; fi",
    );
    site.program(
        "sacctmgr",
        "printf '%s\\n' \"$*\" >>\"$SITE/sacctmgr.calls\"\necho 'dgx|team||normal,high'",
    );
    site
}

#[test]
fn one_question_brings_all_partitions() {
    let site = site();
    let answer = site.run(&Partitions);
    assert_eq!((answer.partitions.len(), answer.dropped), (9, 0));
    assert_eq!((answer.all_must_allow, answer.max_array_size), (true, Some(10_001)));
    assert_eq!((site.calls("sinfo"), site.calls("sacctmgr")), (1, 1));
    let accounts = answer.partitions[0].associations.clone().unwrap().accounts;
    let qos = ["high".to_owned(), "normal".to_owned()];
    assert_eq!(accounts, BTreeMap::from([("team".to_owned(), BTreeSet::from(qos))]));
}

#[test]
fn partitions_are_read_without_accounting_too() {
    let site = site();
    for failing in ["exit 1", "echo 'You are not running a supported accounting_storage plugin' >&2; exit 1"]
    {
        site.program("sacctmgr", failing);
        let answer = site.run(&Partitions);
        assert_eq!((answer.partitions.len(), &answer.partitions[0].associations), (9, &None), "{failing}");
    }
}

#[test]
fn a_variable_of_the_site_does_not_change_the_question() {
    let site = site();
    site.program("sinfo", "printf '%s' \"${SINFO_PARTITION-none}\" >\"$SITE/seen\"\ncat \"$SITE/sinfo.out\"");
    let raw = site.raw_with(&Partitions, &[("SINFO_PARTITION", "cpu")]);
    assert!(Partitions.parse(&raw).is_ok());
    assert_eq!(site.read("seen"), "none");
}

#[test]
fn sinfo_that_fails_is_a_failure_and_not_a_cluster_without_partitions() {
    let site = site();
    for failing in [
        "echo 'slurm_load_partitions: Unable to contact slurm controller (connect failure)' >&2; exit 1",
        "echo 'sinfo: error: something' >&2",
        "exit 3",
    ] {
        site.program("sinfo", failing);
        assert!(site.try_run(&Partitions).is_err(), "{failing}");
    }
    site.program(
        "sinfo",
        "echo 'slurm_load_partitions: Unable to contact slurm controller (connect failure)' >&2; exit 1",
    );
    assert_eq!(site.try_run(&Partitions).unwrap_err().class(), FailureClass::NotDone);
}

#[test]
fn what_scontrol_does_not_say_is_left_out() {
    let site = site();
    site.program("scontrol", "exit 1");
    let answer = site.run(&Partitions);
    assert_eq!((answer.partitions.len(), answer.all_must_allow, answer.max_array_size), (9, false, None));
}
