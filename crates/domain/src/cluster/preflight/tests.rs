use remote::{Association, BaseDir, BaseState, DeepFacts, Said};
use test_case::test_case;

use super::*;
use crate::fixtures::cluster;

fn said(code: i32, text: &str) -> Said {
    Said { code, text: text.to_owned() }
}

fn association(cluster: &str, account: &str) -> Association {
    Association { cluster: cluster.to_owned(), account: account.to_owned(), partition: String::new() }
}

/// A cluster on which all is well.
fn well() -> PreflightAnswer {
    let deep = DeepFacts {
        ping: Some(said(0, "Slurmctld(primary) at ctl is UP")),
        cluster_name: Some("lab".to_owned()),
        accounting: Some(said(0, "")),
        associations: vec![association("lab", "team"), association("other", "elsewhere")],
        pyxis: Some((true, said(0, ""))),
        quota: Some(said(0, "Disk quotas for user tao (uid 2001): none")),
        trials: vec![said(0, "sbatch: Job 1 to start"), said(0, "sbatch: Job 1 to start")],
        credentials_mode: Some(0o600),
        machines: vec!["nvcr.io".to_owned()],
    };
    let base = BaseDir {
        state: BaseState::Writable,
        said: String::new(),
        space: Some((1 << 40, 1 << 41)),
        free_inodes: Some(1_000_000),
    };
    PreflightAnswer { missing_commands: Vec::new(), enroot: true, base, deep: Some(deep) }
}

fn key(mode: u32) -> KeyFinding {
    KeyFinding { path: Some("/k/id".to_owned()), unusable: None, mode: Some(mode) }
}

fn checks(found: Result<PreflightAnswer, Obstacle>) -> Vec<Check> {
    judge(&cluster(), &key(0o600), &[HostFinding { host: "login1".to_owned(), found }])
}

/// The check of a cluster that differs from a good one.
fn one(id: &str, change: impl FnOnce(&mut PreflightAnswer)) -> Check {
    let mut answer = well();
    change(&mut answer);
    checks(Ok(answer)).into_iter().find(|check| check.id == id).unwrap()
}

fn deep(change: impl FnOnce(&mut DeepFacts)) -> impl FnOnce(&mut PreflightAnswer) {
    |answer| change(answer.deep.as_mut().unwrap())
}

#[test]
fn a_cluster_on_which_all_is_well_passes_everything() {
    let checks = checks(Ok(well()));
    for check in &checks {
        assert_eq!(check.outcome, Outcome::Pass, "{check:?}");
        assert!(!check.seen.is_empty() && check.mend.is_none(), "{check:?}");
    }
    assert_eq!(verdict(&checks), Outcome::Pass);
    let ids: Vec<&str> = checks.iter().map(|check| check.id).collect();
    assert_eq!(
        ids,
        [
            "user_and_hosts",
            "private_key",
            "host_key",
            "login",
            "scheduler_commands",
            "controller",
            "partition",
            "partition",
            "account",
            "base_directory",
            "free_space",
            "quota",
            "pyxis",
            "enroot",
            "enroot_credentials"
        ]
    );
}

#[test]
fn whatever_fails_says_how_to_mend_it() {
    let fails: Vec<(&str, Check)> = vec![
        ("chmod 600 /k/id", access::key(&key(0o644))),
        ("PATH", one("scheduler_commands", |answer| answer.missing_commands.push("sacct".to_owned()))),
        (
            "administrators",
            one("controller", deep(|deep| deep.ping = Some(said(1, "Slurmctld(primary) at ctl is DOWN")))),
        ),
        (
            "SLURM_PARTITION",
            one(
                "partition",
                deep(|deep| deep.trials[0] = said(1, "allocation failure: Invalid partition name specified")),
            ),
        ),
        ("its accounts", one("account", deep(|deep| deep.associations.remove(0).account.clear()))),
        ("SLURM_BASE_RESULTS_DIR", one("base_directory", |answer| answer.base.state = BaseState::Unwritable)),
        (
            "SLURM_BASE_RESULTS_DIR",
            one("base_directory", |answer| answer.base.state = BaseState::Uncreatable),
        ),
        ("did not answer", one("base_directory", |answer| answer.base.state = BaseState::Silent)),
        ("Remove", one("free_space", |answer| answer.base.space = Some((1 << 20, 1 << 41)))),
        (
            "quota is exceeded",
            one("quota", deep(|deep| deep.quota = Some(said(0, "/lustre 1100* 1000 1200 -")))),
        ),
        ("Pyxis", one("pyxis", deep(|deep| deep.pyxis = Some((false, said(0, "")))))),
        ("chmod 600", one("enroot_credentials", deep(|deep| deep.credentials_mode = Some(0o644)))),
    ];
    for (word, check) in fails {
        assert_eq!(check.outcome, Outcome::Fail, "{check:?}");
        let told = format!("{} {}", check.seen, check.mend.as_deref().unwrap_or_default());
        assert!(check.mend.is_some() && told.contains(word), "{check:?} lacks {word}");
    }
}

#[test]
fn what_does_not_apply_is_skipped_and_what_only_some_need_is_a_warning() {
    let off = "You are not running a supported accounting_storage plugin";
    assert_eq!(one("account", deep(|deep| deep.accounting = Some(said(1, off)))).outcome, Outcome::Skipped);
    assert_eq!(one("account", deep(|deep| deep.accounting = Some(said(124, "")))).outcome, Outcome::Warn);
    assert_eq!(one("quota", deep(|deep| deep.quota = None)).outcome, Outcome::Skipped);
    assert_eq!(one("enroot", |answer| answer.enroot = false).outcome, Outcome::Skipped);
    assert_eq!(one("enroot_credentials", deep(|deep| deep.credentials_mode = None)).outcome, Outcome::Warn);
    assert_eq!(
        one("base_directory", |answer| answer.base.state = BaseState::Creatable).outcome,
        Outcome::Pass
    );
    assert_eq!(one("free_space", |answer| answer.base.free_inodes = Some(0)).outcome, Outcome::Pass);
    assert_eq!(one("free_space", |answer| answer.base.free_inodes = Some(7)).outcome, Outcome::Warn);
}

const GIB: u64 = 1 << 30;

#[test_case(4 * GIB, 2048 * GIB => Outcome::Warn ; "little for a checkpoint")]
#[test_case(7 * GIB, 15 * GIB => Outcome::Warn ; "more than half of a small one is in use")]
#[test_case(15 * GIB, 15 * GIB => Outcome::Pass ; "nothing is in use, so there is nothing to remove")]
#[test_case(25 * GIB, 100 * 1024 * GIB => Outcome::Warn ; "all but a little of a large one is in use")]
#[test_case(20 * GIB, 1000 * GIB => Outcome::Warn ; "98 percent")]
#[test_case(21 * GIB, 1000 * GIB => Outcome::Pass ; "less than 98 percent")]
#[test_case(1024 * GIB, 100 * 1024 * GIB => Outcome::Pass ; "99 percent, but much is free")]
#[test_case(GIB / 8, 100 * 1024 * GIB => Outcome::Fail ; "nothing left")]
fn free_space_is_judged_by_its_size_and_its_share(free: u64, all: u64) -> Outcome {
    one("free_space", |answer| answer.base.space = Some((free, all))).outcome
}

#[test]
fn an_account_of_another_cluster_does_not_count() {
    let check = one("account", deep(|deep| deep.associations = vec![association("other", "team")]));
    assert_eq!(check.outcome, Outcome::Fail);
    assert!(check.seen.contains("its accounts: none"), "{}", check.seen);
}

#[test_case(ObstacleKind::HostKey, Outcome::Fail, Outcome::Skipped)]
#[test_case(ObstacleKind::Unreachable, Outcome::Skipped, Outcome::Fail)]
#[test_case(ObstacleKind::NoKey, Outcome::Skipped, Outcome::Fail)]
#[test_case(ObstacleKind::Login, Outcome::Pass, Outcome::Fail)]
#[test_case(ObstacleKind::Command, Outcome::Pass, Outcome::Warn)]
fn how_far_we_came_tells_which_check_fails(kind: ObstacleKind, host_key: Outcome, login: Outcome) {
    let checks = checks(Err(Obstacle { kind, seen: "this".to_owned(), mend: "that".to_owned() }));
    let outcome = |id| checks.iter().find(|check| check.id == id).unwrap().outcome;
    assert_eq!((outcome("host_key"), outcome("login")), (host_key, login));
    assert_eq!(outcome("controller"), Outcome::Skipped, "nobody could be asked");
}

#[test]
fn every_host_has_its_own_login_and_only_one_speaks_for_the_cluster() {
    let other = PreflightAnswer { deep: None, ..well() };
    let hosts = [
        HostFinding { host: "login1".to_owned(), found: Ok(other) },
        HostFinding { host: "login2".to_owned(), found: Ok(well()) },
    ];
    let checks = judge(&cluster(), &key(0o600), &hosts);
    let count = |id| checks.iter().filter(|check| check.id == id).count();
    assert_eq!(
        (count("login"), count("base_directory"), count("controller"), count("partition")),
        (2, 2, 1, 2)
    );
    assert_eq!(verdict(&checks), Outcome::Pass);
}
