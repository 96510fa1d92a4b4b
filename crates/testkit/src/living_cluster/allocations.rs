//! What accounting shows of the times that jobs held nodes.

use std::collections::BTreeMap;

use domain::Timestamp;
use remote::{Accounted, Allocations, AttemptKey};
use slurm::{Allocation, JobName, SlurmJobId};

use super::{LivingCluster, Site};

impl LivingCluster {
    /// The runs of each job, as far as accounting knows; none if it does not answer.
    pub fn allocations(&self, command: &Allocations) -> Option<Vec<Accounted>> {
        let site = self.site();
        // Asked by id, and told apart by name.
        let of = |(_, key): &(SlurmJobId, AttemptKey)| {
            let asked = command.jobs.iter().filter(|(_, other)| other.name == key.name);
            let runs = asked.flat_map(|(id, _)| site.allocations(&key.name, *id, site.now)).collect();
            Accounted { runs, cut: false }
        };
        (!site.weather.accounting_silent).then(|| command.jobs.iter().map(of).collect())
    }

    /// The runs of the Slurm job with this name and id that accounting had told by this time.
    pub fn allocated(&self, name: &JobName, id: SlurmJobId, by: Timestamp) -> Vec<Allocation> {
        self.site().allocations(name, id, by)
    }
}

impl Site {
    /// A line for each run of the Slurm job with this name and id, or of each task of that array, that accounting shows at this time.
    fn allocations(&self, name: &JobName, id: SlurmJobId, at: Timestamp) -> Vec<Allocation> {
        let mut lines = Vec::new();
        for (number, job) in self.jobs.iter().filter(|(_, job)| job.name == *name && job.id == id) {
            let mut of_job: BTreeMap<Option<i64>, Allocation> = BTreeMap::new();
            for (_, record) in job.records.iter().filter(|(shown, _)| *shown <= at) {
                let elapsed = record.start.zip(record.end).map_or(0, |(start, end)| end - start);
                let line = Allocation {
                    // The last task of an array has the array's id; others have their own.
                    id: SlurmJobId::new(*number).unwrap_or(job.id),
                    state: record.state.clone(),
                    start: record.start,
                    elapsed: u64::try_from(elapsed).unwrap_or(0),
                    partition: "polar".to_owned(),
                    gpus: 1,
                    cpus: 1,
                    nodes: 1,
                    cpu_seconds: None,
                    most_memory: None,
                    name: job.name.to_string(),
                };
                // A run takes the line over in which the job waited.
                of_job.remove(&None);
                of_job.insert(record.start, line);
            }
            lines.extend(of_job.into_values());
        }
        lines
    }
}
