//! Why a job is pending: Slurm's reason (squeue(1), JOB REASON CODES), and its meaning for people.
//!
//! The reasons are data, in [`WORDS`]. Reasons of limits are composed, such as `QOSMaxGRESPerUser`; `limits` parses them.

mod limits;
mod words;

use std::borrow::Cow;

use serde::Serialize;
use utoipa::ToSchema;

pub use words::WORDS;

/// What keeps a job from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HolderView)]
pub enum Holder {
    /// Jobs of higher priority, or a priority that is not computed yet.
    Priority,
    /// The requested resources are in use.
    Resources,
    /// Nodes that are down, drained or reserved.
    Nodes,
    /// A limit or the state of its partition.
    Partition,
    /// A limit of its QOS.
    Qos,
    /// A limit of its association: its account, or its user in that account.
    Association,
    /// Another job.
    Dependency,
    /// A time that has not come.
    Time,
    /// An advance reservation.
    Reservation,
    /// Licenses that are in use.
    Licenses,
    /// A hold.
    Hold,
    /// The job's own request.
    Request,
    /// Slurm is working on it.
    Slurm,
}

/// Whether waiting helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outlook {
    /// It starts without any action.
    Waits,
    /// It starts after someone acts.
    NeedsAction,
    /// It cannot start unless the job or a rule of the site changes.
    Hopeless,
}

/// An explained reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What keeps the job from starting.
    pub holder: Holder,
    /// The limit, by its name in `scontrol show partition` or `sacctmgr`: `MaxTRESPerUser=gres`.
    pub limit: Option<Cow<'static, str>>,
    /// The meaning for the job, as a clause.
    pub meaning: Cow<'static, str>,
    /// What to do.
    pub advice: &'static str,
    /// Whether waiting helps.
    pub outlook: Outlook,
}

/// One line of the table.
#[derive(Debug)]
pub struct Word {
    /// Slurm's reason, or its beginning.
    pub word: &'static str,
    /// What it means.
    pub means: Explanation,
}

/// Explains a reason of Slurm; `None` if it is unknown.
pub fn explain(reason: &str) -> Option<Explanation> {
    // scontrol writes spaces as underscores, and some reasons have details: `ReqNodeNotAvail, UnavailableNodes:node02`.
    let text = reason.trim().replace('_', " ");
    let word = WORDS.iter().find(|known| known.matches(&text));
    word.map(|known| known.means.clone()).or_else(|| limits::explain(first_word(&text)))
}

impl Word {
    fn matches(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.word) else { return false };
        !rest.starts_with(|next: char| next.is_ascii_alphanumeric())
    }
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("Resources" => Some((Holder::Resources, None)))]
    #[test_case("Priority" => Some((Holder::Priority, None)))]
    #[test_case("ReqNodeNotAvail, UnavailableNodes:node02" => Some((Holder::Nodes, None)))]
    #[test_case("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions" => Some((Holder::Nodes, None)))]
    #[test_case("launch failed requeued held" => Some((Holder::Hold, None)))]
    #[test_case("PartitionTimeLimit" => Some((Holder::Partition, Some("MaxTime".into()))))]
    #[test_case("QOSMaxGRESPerUser" => Some((Holder::Qos, Some("MaxTRESPerUser=gres".into()))))]
    #[test_case("QOSMaxJobsPerUserLimit" => Some((Holder::Qos, Some("MaxJobsPerUser".into()))))]
    #[test_case("QOSGrpCPURunMinutesLimit" => Some((Holder::Qos, Some("GrpTRESRunMins=cpu".into()))))]
    #[test_case("QOSMinCpuNotSatisfied" => Some((Holder::Qos, Some("MinTRESPerJob=cpu".into()))))]
    #[test_case("AssocGrpMemLimit" => Some((Holder::Association, Some("GrpTRES=mem".into()))))]
    #[test_case("AssocMaxWallDurationPerJobLimit" => Some((Holder::Association, Some("MaxWallDurationPerJob".into()))))]
    #[test_case("MaxGRESPerAccount" => Some((Holder::Qos, Some("MaxTRESPerAccount=gres".into()))))]
    #[test_case("MaxCpuRunMinsPerUser" => Some((Holder::Qos, Some("MaxTRESRunMinsPerUser=cpu".into()))))]
    #[test_case("PrioritySomething" => None ; "a word that only begins like a known one")]
    #[test_case("QOSMaxTeapotsPerUser" => None ; "a resource of another Slurm")]
    #[test_case("" => None ; "nothing")]
    fn a_reason_names_what_holds_the_job(reason: &str) -> Option<(Holder, Option<String>)> {
        explain(reason).map(|known| (known.holder, known.limit.map(Cow::into_owned)))
    }

    #[test]
    fn no_word_of_the_table_hides_one_below_it() {
        for (index, word) in WORDS.iter().enumerate() {
            let first = WORDS.iter().position(|known| known.matches(word.word));
            assert_eq!(first, Some(index), "{}", word.word);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_explained_or_not_without_a_panic(text in "\\PC{0,60}", tail in "(QOS|Assoc)?(Grp|Max|Min)?(Cpu|Jobs|Wall|GRES)?\\PC{0,20}") {
            explain(&text);
            explain(&tail);
        }
    }
}
