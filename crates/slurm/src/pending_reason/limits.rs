//! The words for limits are made of parts: whose limit, of what kind, on which resource, counted how. There are some
//! hundred and fifty, all alike.

use std::borrow::Cow;

use super::{Explanation, Holder, Outlook};

/// What Slurm calls a resource in a reason, what `sacctmgr` calls it, and what people do. Longer words stand before those
/// that they begin with.
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

const WAIT: &str = "Wait until other jobs have ended, or ask for the limit to be raised; `sacctmgr show qos` and `sacctmgr show assoc` list limits.";
const SPENT: &str =
    "Ask the site's administrator for more, or wait until the usage has decayed; `sshare` shows it.";
const ASK_LESS: &str = "Cancel the job and send it with less, or ask for the limit to be raised; `sacctmgr show qos` and `sacctmgr show assoc` list limits.";
const ASK_MORE: &str = "Cancel the job and send it with more, or under another QOS.";

/// What a word for a limit means.
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

/// Limits for each account or user are a QOS's, too, and only some say so.
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
        let meaning = format!("as many jobs {} are in the queue as are allowed", of(per)?);
        return Some((format!("{kind}SubmitJobs{per}"), meaning, WAIT, Outlook::Waits));
    }
    if let Some(per) = rest.strip_prefix("Jobs") {
        let meaning = format!("as many jobs {} run as are allowed", of(per)?);
        return Some((format!("{kind}Jobs{per}"), meaning, WAIT, Outlook::Waits));
    }
    match (kind, rest) {
        ("Grp", "Wall") => {
            let meaning = format!("the jobs of {owner} have used up the time that it allows them");
            Some(("GrpWall".to_owned(), meaning, SPENT, Outlook::NeedsAction))
        }
        ("Max", "WallDurationPerJob") => {
            let meaning = format!("it asks for more time than {owner} allows a job");
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
    let all = |of: &str| format!("the running jobs of {of} have all the {name} that it allows them together");
    let ahead =
        |of: &str| format!("the running jobs of {of} may still use as many minutes of {name} as it allows");
    let each =
        |whose: &str| format!("the running jobs of its {whose} have all the {name} that {owner} allows one");
    let each_ahead = |whose: &str| {
        format!(
            "the running jobs of its {whose} may still use as many minutes of {name} as {owner} allows one"
        )
    };
    let more = |of: &str| format!("it asks for more {name} than {owner} allows {of}");
    let (limit, meaning, advice, outlook) = match (kind, measure) {
        ("Grp", "") => ("GrpTRES", all(owner), WAIT, Outlook::Waits),
        ("Grp", "RunMinutes") => ("GrpTRESRunMins", ahead(owner), WAIT, Outlook::Waits),
        ("Grp", "Minutes") => {
            let meaning = format!("{owner} has used up the minutes of {name} that it has");
            ("GrpTRESMins", meaning, SPENT, Outlook::NeedsAction)
        }
        ("Max", "PerJob") => ("MaxTRESPerJob", more("a job"), ASK_LESS, Outlook::Hopeless),
        ("Max", "PerNode") => ("MaxTRESPerNode", more("a job on a node"), ASK_LESS, Outlook::Hopeless),
        ("Max", "MinutesPerJob") => {
            let meaning = format!("it asks for more minutes of {name} than {owner} allows a job");
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
            format!("it asks for fewer {name} than {owner} demands"),
            ASK_MORE,
            Outlook::Hopeless,
        ),
        _ => return None,
    };
    Some((format!("{limit}={resource}"), meaning, advice, outlook))
}
