//! Warnings about valid requests that may not do what was intended.

use serde_json::Value;

use crate::{
    cluster::{
        mount::Mount,
        resources::Resources,
        target::{Cluster, base_of},
    },
    image::ImageRef,
    request::spec::{JobSpec, Work},
    violation::Violation,
};

/// A warning has the same shape as a fault.
pub type Warning = Violation;

impl JobSpec {
    /// What the owner should check before the job uses GPUs.
    pub fn warnings(&self, cluster: &Cluster) -> Vec<Warning> {
        let mut found = Vec::new();
        self.warn_of_work(&mut found);
        self.warn_of_image(&mut found);
        self.warn_of_places(cluster, &mut found);
        self.warn_of_steps(&mut found);
        found.extend(self.other_total());
        let resources = &self.resources;
        if u64::from(resources.soft_timeout.seconds()) == resources.time.seconds() {
            found.push(Warning::new(
                "/resources/timeout_hours",
                "no_margin",
                "equals time_hours: Slurm kills the job before it can end by itself",
            ));
        }
        found
    }

    fn other_total(&self) -> Option<Warning> {
        let Resources { nodes, gpus_per_node, max_gpus_per_node, .. } = self.resources;
        let (asked, total) = (self.requested_gpus?, self.resources.total_gpus());
        (asked != total).then(|| {
            let detail = format_args!(
                "is {asked}, but the job gets {total} GPUs: {nodes} nodes × {gpus_per_node}. Below max_num_gpus_per_node \
                 ({max_gpus_per_node}), num_gpus is the number per node; from it on, the job takes whole nodes; gpus_per_node, gres and \
                 specs override both. Leave num_gpus out, and give gpus_per_node and num_nodes instead"
            );
            Warning::new("/resources/num_gpus", "gpu_total", detail)
        })
    }

    fn warn_of_work(&self, found: &mut Vec<Warning>) {
        let Work::Tao { specs, .. } = &self.work else { return };
        if specs.as_object().is_some_and(serde_json::Map::is_empty) {
            found.push(Warning::new("/specs", "empty", "is empty: the container uses its own defaults"));
        }
        if specs.get("results_dir").is_some_and(|dir| *dir != Value::Null) {
            found.push(Warning::new(
                "/specs/results_dir",
                "replaced",
                "is ignored: the job uses its own results directory",
            ));
        }
    }

    /// The time limit of a step has no effect if the job's own limit comes first.
    fn warn_of_steps(&self, found: &mut Vec<Warning>) {
        let Work::Components { list } = &self.work else { return };
        let ready = list.iter().filter_map(|one| one.service.ready.as_ref());
        let start = ready.map(|ready| ready.timeout_seconds).max().unwrap_or(0);
        let limit = self.resources.soft_timeout.seconds();
        for (place, step) in list.iter().filter(|one| !one.is_service).enumerate() {
            let Some(minutes) = step.timeout_minutes else { continue };
            if minutes.saturating_mul(60).saturating_add(start) < limit {
                continue;
            }
            let after = if start == 0 {
                String::new()
            } else {
                format!(", after up to {} minutes in which the services start", start.div_ceil(60))
            };
            let detail = format_args!(
                "is {minutes} minutes{after}; the job's own limit of {} minutes comes first. Set a shorter one, or give the job more time",
                limit / 60
            );
            found.push(Warning::new(format!("/steps/{place}/timeout_minutes"), "no_margin", detail));
        }
    }

    fn warn_of_image(&self, found: &mut Vec<Warning>) {
        match &self.image {
            Some(image) if image.is_latest() => found.push(Warning::new(
                "/image",
                "moving_tag",
                "has a moving tag, or none: a retry may run another image. Name a version or a digest",
            )),
            Some(ImageRef::Daemon { .. }) => found.push(Warning::new(
                "/image",
                "node_daemon",
                "needs a Docker daemon on the node, which few clusters have",
            )),
            Some(ImageRef::File(_) | ImageRef::Registry { .. }) | None => {}
        }
    }

    fn warn_of_places(&self, cluster: &Cluster, found: &mut Vec<Warning>) {
        let asked = self.cloud_plain.get("base_results_dir").and_then(Value::as_str);
        if asked.is_some_and(|text| text.parse().map(base_of).as_ref() != Ok(&cluster.base_dir)) {
            found.push(Warning::new(
                "/cloud_metadata/base_results_dir",
                "ignored",
                format_args!(
                    "is ignored: results go below {}, the cluster's configured directory",
                    cluster.base_dir
                ),
            ));
        }
        if self.image.is_none() {
            return;
        }
        let base = Mount::from(cluster.base_dir.clone());
        let image = self.image.as_ref().and_then(ImageRef::file);
        for path in self.required_paths.iter().filter(|path| Some(*path) != image) {
            if !self.mounts.iter().chain([&base]).any(|mount| mount.shows(path)) {
                found.push(Warning::new(
                    "/container/mounts",
                    "not_mounted",
                    format_args!("do not include {path}, so the container cannot see it"),
                ));
            }
        }
    }
}
