//! The resources of a request: TAO's arithmetic, with contradictions rejected.

use std::ops::RangeInclusive;

use slurm::{RunTime, WallTime};

use crate::{
    cluster::resources::Resources,
    request::options_body::ResourcesRequest,
    violation::{Faults, Violation},
};

const MAX_NODES: u32 = 1024;
const MAX_GPUS: u32 = 8192;
const MAX_CPUS: u32 = 4096;
const MAX_TASKS: u32 = 1024;

impl Resources {
    /// The effective resources of a request.
    ///
    /// `num_gpus` follows TAO's rule: below `max_num_gpus_per_node` it is the number per node. From there on the job gets
    /// whole nodes, as many as hold that total and at least `num_nodes`. `gpus_per_node` sets the number explicitly.
    pub fn from_request(
        asked: &ResourcesRequest,
        defaults: &Self,
        max_time_hours: f64,
    ) -> Result<Self, Vec<Violation>> {
        let mut wrong = Faults::default();
        let mut within = |field: &str, value: Option<u32>, default: u32, range: RangeInclusive<u32>| {
            wrong.within(&format!("/resources/{field}"), value.unwrap_or(default), range)
        };
        let nodes = within("num_nodes", asked.num_nodes, defaults.nodes, 1..=MAX_NODES);
        let max =
            within("max_num_gpus_per_node", asked.max_num_gpus_per_node, defaults.max_gpus_per_node, 1..=64);
        let gpus = within("num_gpus", asked.num_gpus, defaults.gpus_per_node, 0..=MAX_GPUS);
        let per_node = within("gpus_per_node", asked.gpus_per_node, 0, 0..=max.clamp(1, 64));
        let tasks = within("tasks_per_node", asked.tasks_per_node, defaults.tasks_per_node, 1..=MAX_TASKS);
        let cpus = within("cpus_per_task", asked.cpus_per_task, defaults.cpus_per_task, 1..=MAX_CPUS);

        let (nodes, gpus_per_node, exclusive) = match asked.gpus_per_node {
            Some(_) => {
                if asked
                    .num_gpus
                    .is_some_and(|total| total != per_node && total != per_node.saturating_mul(nodes))
                {
                    wrong.add("/resources/num_gpus",
                        "contradiction",
                        format_args!(
                            "is {gpus}, but gpus_per_node × num_nodes is {per_node} × {nodes}; give only one of them"
                        ),
                    );
                }
                (nodes, per_node, per_node == max)
            }
            // `within` has rejected a `max` of 0.
            None if gpus >= max => (nodes.max(gpus.div_ceil(max.max(1))), max, true),
            None => (nodes, gpus, false),
        };

        let times = times(asked, defaults, max_time_hours, &mut wrong);
        match times {
            Some((time, soft_timeout)) if wrong.0.is_empty() => Ok(Self {
                nodes,
                gpus_per_node,
                max_gpus_per_node: max,
                tasks_per_node: tasks,
                cpus_per_task: cpus,
                exclusive,
                time,
                soft_timeout,
            }),
            _ => Err(wrong.0),
        }
    }
}

/// The wall time and the job's own limit below it. The limit defaults to 0.2 hours less, as in TAO.
fn times(
    asked: &ResourcesRequest,
    defaults: &Resources,
    max_time_hours: f64,
    wrong: &mut Faults,
) -> Option<(WallTime, RunTime)> {
    if let Some(hours) = asked.time_hours.filter(|hours| *hours > max_time_hours) {
        wrong.add(
            "/resources/time_hours",
            "time_limit",
            format_args!("is {hours} hours; this cluster allows at most {max_time_hours} (max_time_hours)"),
        );
        return None;
    }
    let (least, most) = (Resources::LEAST_HOURS, Resources::MOST_HOURS);
    let mut refuse = |field: &str| {
        let hours = if field == "time_hours" { asked.time_hours } else { asked.timeout_hours };
        let seen = hours.map(|hours| format!("is {hours}; ")).unwrap_or_default();
        let detail = format_args!("{seen}must be a number of hours from {least} to {most}");
        wrong.add(format!("/resources/{field}"), "out_of_range", detail);
    };
    for (field, hours) in [("time_hours", asked.time_hours), ("timeout_hours", asked.timeout_hours)] {
        if hours.is_some_and(|hours| !(least..=most).contains(&hours)) {
            refuse(field);
            return None;
        }
    }
    let time = match asked.time_hours {
        Some(hours) => WallTime::from_hours(hours).map_err(|_| refuse("time_hours")).ok()?,
        None => defaults.time,
    };
    let soft = match (asked.timeout_hours, asked.time_hours) {
        (Some(hours), _) => RunTime::from_hours(hours).map_err(|_| refuse("timeout_hours")).ok()?,
        (None, Some(hours)) => {
            RunTime::from_hours((hours - 0.2).max(hours / 2.0)).map_err(|_| refuse("time_hours")).ok()?
        }
        (None, None) => defaults.soft_timeout,
    };
    if u64::from(soft.seconds()) > time.seconds() {
        wrong.add(
            "/resources/timeout_hours",
            "contradiction",
            format_args!(
                "is {} hours, longer than time_hours, so Slurm would kill the job before its own limit; request at most {}",
                f64::from(soft.seconds()) / 3600.0,
                f64::from(time.minutes()) / 60.0
            ),
        );
        return None;
    }
    Some((time, soft))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn effective(asked: &ResourcesRequest) -> Result<Resources, Vec<Violation>> {
        Resources::from_request(asked, &Resources::packaged().unwrap(), 4.0)
    }

    #[test_case(4, 1 => (1, 4, false) ; "below the most a node has: per node")]
    #[test_case(8, 1 => (1, 8, true) ; "a whole node")]
    #[test_case(12, 1 => (2, 8, true) ; "a total that needs two nodes")]
    #[test_case(16, 2 => (2, 8, true) ; "a total on the nodes asked for")]
    #[test_case(2, 3 => (3, 2, false) ; "two GPUs on each of three nodes")]
    #[test_case(0, 1 => (1, 0, false) ; "no GPU at all")]
    fn gpus_are_spread_as_in_tao(gpus: u32, nodes: u32) -> (u32, u32, bool) {
        let asked =
            ResourcesRequest { num_gpus: Some(gpus), num_nodes: Some(nodes), ..ResourcesRequest::default() };
        let got = effective(&asked).unwrap();
        (got.nodes, got.gpus_per_node, got.exclusive)
    }

    #[test]
    fn the_soft_timeout_follows_the_wall_time() {
        let asked = ResourcesRequest { time_hours: Some(2.0), ..ResourcesRequest::default() };
        let got = effective(&asked).unwrap();
        assert_eq!((got.time.minutes(), got.soft_timeout.seconds()), (120, 108 * 60));
    }

    #[test_case(&ResourcesRequest { time_hours: Some(12.0), ..ResourcesRequest::default() }, "/resources/time_hours" ; "longer than allowed")]
    #[test_case(&ResourcesRequest { time_hours: Some(f64::NAN), ..ResourcesRequest::default() }, "/resources/time_hours" ; "not a number")]
    #[test_case(&ResourcesRequest { timeout_hours: Some(4.5), ..ResourcesRequest::default() }, "/resources/timeout_hours" ; "own limit above the wall time")]
    #[test_case(&ResourcesRequest { num_nodes: Some(0), ..ResourcesRequest::default() }, "/resources/num_nodes" ; "no node")]
    #[test_case(&ResourcesRequest { max_num_gpus_per_node: Some(0), ..ResourcesRequest::default() }, "/resources/max_num_gpus_per_node" ; "nodes without GPUs")]
    #[test_case(&ResourcesRequest { time_hours: Some(1e-9), ..ResourcesRequest::default() }, "/resources/time_hours" ; "next to no time")]
    #[test_case(&ResourcesRequest { num_gpus: Some(7), gpus_per_node: Some(2), ..ResourcesRequest::default() }, "/resources/num_gpus" ; "two numbers that disagree")]
    fn a_contradiction_names_its_field(asked: &ResourcesRequest, pointer: &str) {
        let wrong = effective(asked).unwrap_err();
        assert_eq!(wrong.iter().map(|v| v.pointer.as_str()).collect::<Vec<_>>(), [pointer]);
    }

    #[test]
    fn numbers_out_of_range_are_rejected() {
        let huge = Some(u32::MAX);
        let asked = ResourcesRequest {
            num_nodes: huge,
            num_gpus: Some(1),
            gpus_per_node: huge,
            max_num_gpus_per_node: huge,
            ..ResourcesRequest::default()
        };
        let wrong = effective(&asked).unwrap_err();
        assert!(wrong.iter().any(|fault| fault.pointer == "/resources/num_nodes"), "{wrong:?}");
    }
}
