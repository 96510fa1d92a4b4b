//! The states of a job as squeue and sacct print them.

use std::{convert::Infallible, fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The stored length of an unknown state, in characters.
const UNKNOWN_SHOWN: usize = 64;

macro_rules! states {
    ($($(#[$doc:meta])* $variant:ident => $text:literal,)*) => {
        /// A job's state (squeue(1) and sacct(1), "JOB STATE CODES"; `slurm.h` of 22.05 and 24.11).
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
        pub enum SlurmState {
            $($(#[$doc])* $variant,)*
            /// An unknown state: printable ASCII, at most 64 characters.
            Unknown(String),
        }

        impl SlurmState {
            /// All known states.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant,)*];

            /// Slurm's name of the state.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(word) => word,
                }
            }
        }
    };
}

states! {
    /// Waiting for an allocation.
    Pending => "PENDING",
    /// Has an allocation whose nodes are getting ready, for instance booting.
    Configuring => "CONFIGURING",
    /// Running.
    Running => "RUNNING",
    /// Ending: some processes may still run (for at most `KillWait`, unless they cannot be killed).
    Completing => "COMPLETING",
    /// Ended with exit code 0.
    Completed => "COMPLETED",
    /// Ended with another exit code or by a signal.
    Failed => "FAILED",
    /// Reached its time limit.
    Timeout => "TIMEOUT",
    /// Canceled by a user, by Slurm, or because of a dependency that can never be met.
    Cancelled => "CANCELLED",
    /// One of its nodes failed.
    NodeFail => "NODE_FAIL",
    /// A node did not boot.
    BootFail => "BOOT_FAIL",
    /// Could not have ended before its `--deadline`.
    Deadline => "DEADLINE",
    /// Used more memory than its limit.
    OutOfMemory => "OUT_OF_MEMORY",
    /// Ended for a job of higher priority. A requeued one is `Pending` in squeue while sacct still reports this.
    Preempted => "PREEMPTED",
    /// Has an allocation, but its processes are stopped and other jobs use the CPUs.
    Suspended => "SUSPENDED",
    /// Has an allocation, and its processes are stopped by SIGSTOP.
    Stopped => "STOPPED",
    /// Is being requeued.
    Requeued => "REQUEUED",
    /// Back in the queue, held.
    RequeueHold => "REQUEUE_HOLD",
    /// Is being requeued in a federation.
    RequeueFed => "REQUEUE_FED",
    /// Its allocation is about to change in size.
    Resizing => "RESIZING",
    /// Held because its reservation was deleted.
    ResvDelHold => "RESV_DEL_HOLD",
    /// Revoked because another cluster of the federation started it.
    Revoked => "REVOKED",
    /// Is being signaled.
    Signaling => "SIGNALING",
    /// Requeued and held in a special state by an operator or a script of the site.
    SpecialExit => "SPECIAL_EXIT",
    /// Its files are being staged out of a burst buffer.
    StageOut => "STAGE_OUT",
    /// Could not be launched on its nodes; a failed prolog is one reason.
    LaunchFailed => "LAUNCH_FAILED",
    /// The nodes could not be configured for it.
    ReconfigFail => "RECONFIG_FAIL",
    /// Has an allocation whose nodes are powered down and wait to be powered up.
    PowerUpNode => "POWER_UP_NODE",
    /// Its accounting record is being written.
    UpdateDb => "UPDATE_DB",
}

/// What a state means for the life of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// In the queue: it has no nodes, or they are not ready yet.
    Waiting,
    /// On its nodes.
    Running,
    /// On its nodes, and stopped by Slurm.
    Suspended,
    /// Ended: it does not run again unless it is requeued.
    Final,
    /// Not known from this state.
    Unclear,
}

impl SlurmState {
    /// What the state means for the life of a job.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Pending
            | Self::Configuring
            | Self::Requeued
            | Self::RequeueHold
            | Self::RequeueFed
            | Self::ResvDelHold
            | Self::SpecialExit
            | Self::PowerUpNode => Stage::Waiting,
            Self::Running | Self::Completing | Self::Resizing | Self::Signaling | Self::StageOut => {
                Stage::Running
            }
            Self::Suspended | Self::Stopped => Stage::Suspended,
            Self::Completed
            | Self::Failed
            | Self::Timeout
            | Self::Cancelled
            | Self::NodeFail
            | Self::BootFail
            | Self::Deadline
            | Self::OutOfMemory
            | Self::Preempted
            | Self::Revoked
            | Self::LaunchFailed
            | Self::ReconfigFail => Stage::Final,
            Self::UpdateDb | Self::Unknown(_) => Stage::Unclear,
        }
    }

    /// Whether the job is in the queue.
    pub fn is_waiting(&self) -> bool {
        self.stage() == Stage::Waiting
    }

    /// Whether the job holds an allocation or may still get one. An unknown state counts as active, so that a job that
    /// may use GPUs is not dropped because of a new state name.
    pub fn is_active(&self) -> bool {
        !self.is_final()
    }

    /// Whether the job has ended and does not run again unless it is requeued.
    pub fn is_final(&self) -> bool {
        self.stage() == Stage::Final
    }
}

impl fmt::Display for SlurmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SlurmState {
    type Err = Infallible;

    /// Takes the first word: sacct prints `CANCELLED by 2001`, and `CANCELLED+` where a column was too narrow.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let word = text.split([' ', '+']).next().unwrap_or_default();
        let known = Self::KNOWN.iter().find(|known| known.as_str() == word);
        Ok(known.cloned().unwrap_or_else(|| Self::Unknown(printable(word))))
    }
}

fn printable(word: &str) -> String {
    word.chars().take(UNKNOWN_SHOWN).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    fn state(text: &str) -> SlurmState {
        text.parse().unwrap()
    }

    #[test]
    fn every_known_state_round_trips() {
        for known in SlurmState::KNOWN {
            assert_eq!(&state(known.as_str()), known);
            assert_eq!(known.to_string(), known.as_str());
            assert_ne!(known.is_active(), known.is_final());
        }
    }

    #[test_case("CANCELLED by 2001", &SlurmState::Cancelled; "with its author")]
    #[test_case("CANCELLED+", &SlurmState::Cancelled; "cut by a narrow column")]
    #[test_case("OUT_OF_ME+", &SlurmState::Unknown("OUT_OF_ME".to_owned()); "cut inside the word")]
    #[test_case("", &SlurmState::Unknown(String::new()); "empty")]
    #[test_case("completed", &SlurmState::Unknown("completed".to_owned()); "not Slurm's spelling")]
    fn the_first_word_counts(text: &str, expected: &SlurmState) {
        assert_eq!(&state(text), expected);
    }

    #[test]
    fn an_unknown_state_is_neither_final_nor_forgotten() {
        let unknown = state("BRAND_NEW");
        assert!(unknown.is_active());
        assert!(!unknown.is_final());
    }

    proptest! {
        #[test]
        fn any_text_parses_to_something_small_that_round_trips(text in any::<String>()) {
            let first = state(&text);
            prop_assert!(first.as_str().len() <= UNKNOWN_SHOWN);
            prop_assert_eq!(state(first.as_str()), first);
        }
    }
}
