//! The names of a job: its id, the number of an attempt, and the Slurm job names made of them.

use std::{fmt, num::NonZeroU32, str::FromStr};

use remote::Subject;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// An id of its own type.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            pub const fn get(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id!(
    /// The job's id: one UUID for life, however many attempts the job takes.
    JobId
);
id!(
    /// The pipeline's id.
    PipelineId
);

/// The number of an attempt of a job; it counts from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNo(NonZeroU32);

impl AttemptNo {
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    pub const fn get(self) -> u32 {
        self.0.get()
    }

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for AttemptNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The prefix of all Slurm job names of this service.
pub const OUR_NAMES: &str = "tao-";

/// The attempt that a Slurm job name belongs to.
///
/// The name is unique, so that it finds a submission whose reply was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin {
    pub job: JobId,
    pub no: AttemptNo,
}

impl Origin {
    /// Parses a Slurm job name, if this service could have given it.
    pub fn of(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("tao-job-")?;
        let (id, no) = match rest.split_once("-r") {
            Some((id, no)) => (id, AttemptNo::new(no.parse().ok()?)?),
            None => (rest, AttemptNo::FIRST),
        };
        let origin = Self { job: JobId::new(Uuid::try_parse(id).ok()?), no };
        // A UUID has several spellings and ours is one of them: a job with another spelling is not ours.
        (origin.name() == name).then_some(origin)
    }

    /// The subject of remote commands for it.
    pub fn subject(self) -> Subject {
        Subject::Attempt { job: self.job.get(), no: self.no.get() }
    }

    /// The Slurm job name. The first attempt has the name that TAO gives its jobs, so that people find it.
    pub(crate) fn name(self) -> String {
        match self {
            Self { job, no: AttemptNo::FIRST } => format!("tao-job-{job}"),
            Self { job, no } => format!("tao-job-{job}-r{no}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    const JOB: &str = "00000000-0000-0000-0000-00000000000a";

    fn no(number: u32) -> AttemptNo {
        AttemptNo::new(number).unwrap()
    }

    #[test]
    fn the_first_name_is_taos_and_later_ones_have_a_number() {
        let job = JobId::new(Uuid::nil());
        let name = |no| Origin { job, no }.name();
        assert_eq!(name(AttemptNo::FIRST), "tao-job-00000000-0000-0000-0000-000000000000");
        assert_eq!(name(AttemptNo::FIRST.next()), "tao-job-00000000-0000-0000-0000-000000000000-r2");
    }

    #[test]
    fn our_names_parse_back() {
        let job = JobId::new(JOB.parse().unwrap());
        for origin in [Origin { job, no: no(1) }, Origin { job, no: no(12) }] {
            assert!(origin.name().starts_with(OUR_NAMES));
            assert_eq!(Origin::of(&origin.name()), Some(origin));
        }
    }

    #[test_case(""; "nothing")]
    #[test_case("tao-job-"; "no id")]
    #[test_case("tao-job-0000000000000000000000000000000a"; "an id without hyphens")]
    #[test_case("tao-job-00000000-0000-0000-0000-00000000000A"; "an id in capitals")]
    #[test_case("tao-job-00000000-0000-0000-0000-00000000000a-r1"; "the first attempt has no number")]
    #[test_case("tao-job-00000000-0000-0000-0000-00000000000a-r02"; "a number with a zero before it")]
    #[test_case("tao-job-00000000-0000-0000-0000-00000000000a-r0"; "no such attempt")]
    #[test_case("tao-job-00000000-0000-0000-0000-00000000000a-r99999999999"; "a number that is too large")]
    #[test_case("tao-job-00000000-0000-0000-0000-00000000000a?x"; "a separator where there was a bar")]
    #[test_case("tao-job-00000000-0000-0000-0000-00000000000a "; "a blank where there was a newline")]
    #[test_case("tao-sqsh-0000000000000000000000000000000a-1"; "a conversion of an earlier release")]
    fn a_name_that_this_service_never_gives_is_not_ours(name: &str) {
        assert_eq!(Origin::of(name), None);
    }
}
