//! Reasons of limits: about 150 words composed of the owner of the limit, its kind, the resource and the measure.

use std::borrow::Cow;

use super::{Explanation, Holder, Outlook};

/// A resource's name in reasons, in `sacctmgr`, and for people. A longer word comes before its own prefix.
const RESOURCES: [(&str, &str, &str); 11] = [
    ("Billing", "billing", "billing units"),
    ("BB", "bb", "burst buffer space"),
    ("CPU", "cpu", "CPUs"),
    ("Cpu", "cpu", "CPUs"),
    ("Energy", "energy", "energy"),
    ("GRES", "gres", "GPUs or other generic resources"),
    ("License", "license", "licenses"),
    ("Memory", "mem", "memory"),
    ("Mem", "mem", "memory"),
    ("Node", "node", "nodes"),
    ("Unknown", "?", "resources"),
];

const WAIT: &str = "Wait until other jobs have ended, or ask the site to raise the limit; `sacctmgr show qos` and `sacctmgr show assoc` list limits.";
const SPENT: &str =
    "Ask the site's administrator for more, or wait until the usage has decayed; `sshare` shows it.";
const ASK_LESS: &str = "Cancel the job and submit it with less, or ask the site to raise the limit; `sacctmgr show qos` and `sacctmgr show assoc` list limits.";
const ASK_MORE: &str = "Cancel the job and submit it with more, or with another QOS.";

/// Explains the reason of a limit.
pub(super) fn explain(word: &str) -> Option<Explanation> {
    let (holder, owner, rest) = owner(word)?;
    let (kind, rest) = KINDS.iter().find_map(|kind| Some((*kind, rest.strip_prefix(kind)?)))?;
    let rest = ["Limit", "NotSatisfied"].iter().find_map(|end| rest.strip_suffix(end)).unwrap_or(rest);
    let (limit, meaning, advice, outlook) =
        counted(kind, rest, owner).or_else(|| measured(kind, rest, owner))?;
    Some(Explanation {
        holder,
        limit: Some(Cow::Owned(limit)),
        meaning: Cow::Owned(meaning),
        advice,
        outlook,
    })
}

const KINDS: [&str; 3] = ["Grp", "Max", "Min"];

type Found = (String, String, &'static str, Outlook);

/// The owner of the limit. Limits per account or per user belong to a QOS, even if the word does not contain `QOS`.
fn owner(word: &str) -> Option<(Holder, &'static str, &str)> {
    let qos = (Holder::Qos, "its QOS");
    if let Some(rest) = word.strip_prefix("QOS") {
        Some((qos.0, qos.1, rest))
    } else if let Some(rest) = word.strip_prefix("Assoc") {
        Some((Holder::Association, "its association (account and user)", rest))
    } else {
        (word.ends_with("PerAccount") || word.ends_with("PerUser")).then_some((qos.0, qos.1, word))
    }
}

/// Limits on the number of jobs and on their time.
fn counted(kind: &str, rest: &str, owner: &str) -> Option<Found> {
    let of = |per: &str| match per {
        "PerUser" => Some(format!("of its user under {owner}")),
        "PerAccount" => Some(format!("of its account under {owner}")),
        "" => Some(format!("of {owner}")),
        _ => None,
    };
    if let Some(per) = rest.strip_prefix("SubmitJobs").or_else(|| rest.strip_prefix("SubmitJob")) {
        let meaning = format!("the limit of queued jobs {} is reached", of(per)?);
        return Some((format!("{kind}SubmitJobs{per}"), meaning, WAIT, Outlook::Waits));
    }
    if let Some(per) = rest.strip_prefix("Jobs") {
        let meaning = format!("the limit of running jobs {} is reached", of(per)?);
        return Some((format!("{kind}Jobs{per}"), meaning, WAIT, Outlook::Waits));
    }
    match (kind, rest) {
        ("Grp", "Wall") => {
            let meaning = format!("the jobs of {owner} have used up its time");
            Some(("GrpWall".to_owned(), meaning, SPENT, Outlook::NeedsAction))
        }
        ("Max", "WallDurationPerJob") => {
            let meaning = format!("it requests more time than {owner} allows per job");
            Some(("MaxWallDurationPerJob".to_owned(), meaning, ASK_LESS, Outlook::Hopeless))
        }
        _ => None,
    }
}

/// Limits on resources (TRES).
fn measured(kind: &str, rest: &str, owner: &str) -> Option<Found> {
    let (resource, name, measure) = RESOURCES
        .iter()
        .find_map(|(word, resource, name)| Some((resource, name, rest.strip_prefix(word)?)))?;
    let all = |of: &str| format!("running jobs of {of} use all {name} that it allows");
    let ahead = |of: &str| format!("running jobs of {of} may still use all minutes of {name} that it allows");
    let each = |subject: &str| {
        format!("running jobs of its {subject} use all {name} that {owner} allows per {subject}")
    };
    let each_ahead = |subject: &str| {
        format!(
            "running jobs of its {subject} may still use all minutes of {name} that {owner} allows per {subject}"
        )
    };
    let more = |of: &str| format!("it requests more {name} than {owner} allows {of}");
    let (limit, meaning, advice, outlook) = match (kind, measure) {
        ("Grp", "") => ("GrpTRES", all(owner), WAIT, Outlook::Waits),
        ("Grp", "RunMinutes") => ("GrpTRESRunMins", ahead(owner), WAIT, Outlook::Waits),
        ("Grp", "Minutes") => {
            let meaning = format!("{owner} has used up its minutes of {name}");
            ("GrpTRESMins", meaning, SPENT, Outlook::NeedsAction)
        }
        ("Max", "PerJob") => ("MaxTRESPerJob", more("per job"), ASK_LESS, Outlook::Hopeless),
        ("Max", "PerNode") => ("MaxTRESPerNode", more("per job and node"), ASK_LESS, Outlook::Hopeless),
        ("Max", "MinutesPerJob") => {
            let meaning = format!("it requests more minutes of {name} than {owner} allows per job");
            ("MaxTRESMinsPerJob", meaning, ASK_LESS, Outlook::Hopeless)
        }
        ("Max", "PerUser") => ("MaxTRESPerUser", each("user"), WAIT, Outlook::Waits),
        ("Max", "PerAccount") => ("MaxTRESPerAccount", each("account"), WAIT, Outlook::Waits),
        ("Max", "RunMinsPerUser") => ("MaxTRESRunMinsPerUser", each_ahead("user"), WAIT, Outlook::Waits),
        ("Max", "RunMinsPerAccount") => {
            ("MaxTRESRunMinsPerAccount", each_ahead("account"), WAIT, Outlook::Waits)
        }
        ("Min", "") => (
            "MinTRESPerJob",
            format!("it requests fewer {name} than {owner} requires"),
            ASK_MORE,
            Outlook::Hopeless,
        ),
        _ => return None,
    };
    Some((format!("{limit}={resource}"), meaning, advice, outlook))
}
