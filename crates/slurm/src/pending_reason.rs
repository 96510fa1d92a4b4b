//! Why a job waits: Slurm's word for it (squeue(1), JOB REASON CODES), and what it means for people.
//!
//! The words are data, in [`WORDS`]. Those of limits are made of parts, such as `QOSMaxGRESPerUser`, and are read by
//! their parts in `limits`.

mod limits;
mod words;

use std::borrow::Cow;

pub use words::WORDS;

/// What keeps a job from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr, strum::EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum Holder {
    /// Jobs of higher priority, or that no priority was computed yet.
    Priority,
    /// What it asks for is in use.
    Resources,
    /// Nodes that are broken, drained or promised to others.
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
    /// Somebody or something has put it on hold.
    Hold,
    /// What the job itself asks for.
    Request,
    /// Slurm is at work on it.
    Slurm,
}

/// Whether it helps to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outlook {
    /// It starts by itself when its time has come.
    Waits,
    /// It starts once somebody has done something about it.
    NeedsAction,
    /// It does not start as it is: the job has to be another, or a rule of the site.
    Hopeless,
}

/// A word of Slurm, explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What keeps the job from starting.
    pub holder: Holder,
    /// The limit that does, as `scontrol show partition` or `sacctmgr` call it, if it is one: `MaxTRESPerUser=gres`.
    pub limit: Option<Cow<'static, str>>,
    /// What the word means for the job: the rest of a sentence about it.
    pub meaning: Cow<'static, str>,
    /// What to do about it.
    pub advice: &'static str,
    /// Whether it helps to wait.
    pub outlook: Outlook,
}

/// One line of the table.
#[derive(Debug)]
pub struct Word {
    /// What Slurm says, or what its text begins with.
    pub word: &'static str,
    /// What it means.
    pub means: Explanation,
}

/// What Slurm's reason means; nothing for one that nobody has explained.
pub fn explain(reason: &str) -> Option<Explanation> {
    // scontrol writes spaces as underscores, and some reasons have more behind them: `ReqNodeNotAvail,
    // UnavailableNodes:node02`.
    let text = reason.trim().replace('_', " ");
    let word = WORDS.iter().find(|known| known.is_said_by(&text));
    word.map(|known| known.means.clone()).or_else(|| limits::explain(first_word(&text)))
}

impl Word {
    fn is_said_by(&self, text: &str) -> bool {
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
            let first = WORDS.iter().position(|known| known.is_said_by(word.word));
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
