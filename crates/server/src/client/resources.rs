//! The resources of a job in words.

use std::fmt;

use domain::counted;
use serde::Deserialize;

/// A job's resources, as the API shows them.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    num_nodes: u32,
    gpus_per_node: u32,
    total_gpus: u32,
    pub cpus_per_task: u32,
    time_hours: f64,
}

impl fmt::Display for Resources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_nodes, gpus_per_node, total_gpus, time_hours, .. } = *self;
        write!(out, "{}", counted(num_nodes.into(), "node"))?;
        match (num_nodes, gpus_per_node) {
            (_, 0) => write!(out, ", no GPU")?,
            (1, gpus) => write!(out, ", {}", counted(gpus.into(), "GPU"))?,
            (_, gpus) => write!(
                out,
                " of {}, {} in all",
                counted(gpus.into(), "GPU"),
                counted(total_gpus.into(), "GPU")
            )?,
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a limit of minutes is small and positive"
        )]
        let minutes = (time_hours * 60.0).round() as u64;
        match (minutes / 60, minutes % 60) {
            (0, minutes) => write!(out, ", at most {minutes} min"),
            (hours, 0) => write!(out, ", at most {hours} h"),
            (hours, minutes) => write!(out, ", at most {hours} h {minutes} min"),
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(1, 0, 0.5, "1 node, no GPU, at most 30 min")]
    #[test_case(1, 1, 1.0, "1 node, 1 GPU, at most 1 h")]
    #[test_case(1, 8, 4.0, "1 node, 8 GPUs, at most 4 h")]
    #[test_case(2, 1, 1.5, "2 nodes of 1 GPU, 2 GPUs in all, at most 1 h 30 min")]
    #[test_case(4, 0, 0.1, "4 nodes, no GPU, at most 6 min")]
    fn one_is_one_and_none_is_no_number(num_nodes: u32, gpus_per_node: u32, time_hours: f64, expected: &str) {
        let total_gpus = num_nodes * gpus_per_node;
        let resources = Resources { num_nodes, gpus_per_node, total_gpus, cpus_per_task: 1, time_hours };
        assert_eq!(resources.to_string(), expected);
    }
}
