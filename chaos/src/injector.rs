//! Injects faults. Each lane has one fault on at a time, and two lanes never have faults of the same group on.

use std::{
    collections::HashSet,
    fs,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use uuid::Uuid;

use crate::{
    faults::{Act, Fault},
    jobs::Kind,
    ledger::Ledger,
    repeat::one_line,
    sandbox::{Sandbox, run_dir},
    service::Service,
};

pub(crate) const LANES: u64 = 2;

#[derive(Debug)]
pub(crate) struct Injector {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) service: Arc<Service>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) catalogue: Vec<Fault>,
    pub(crate) over: Arc<AtomicBool>,
}

/// The groups with a fault that is on.
static ACTIVE_GROUPS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);

fn take(group: &'static str) -> bool {
    ACTIVE_GROUPS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(group)
}

fn release(group: &'static str) {
    ACTIVE_GROUPS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().remove(group);
}

/// Resumes nodes that Slurm took out, until the run ends: as the cluster's operator does.
pub(crate) fn operate(sandbox: &Sandbox, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        sleep(20.0, over);
        sandbox.resume_drained();
    }
}

/// Sleeps, but not beyond the end of the run.
fn sleep(seconds: f64, over: &AtomicBool) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end && !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50).min(end.saturating_duration_since(Instant::now())));
    }
}

impl Injector {
    /// Injects one fault after another until the run ends.
    pub(crate) fn run(&self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        while !self.over.load(Ordering::Relaxed) {
            sleep(rng.random_range(0.5..5.0), &self.over);
            let Ok(fault) = self.catalogue.choose_weighted(&mut rng, |fault| fault.weight) else { return };
            let seconds = rng.random_range(fault.seconds.clone());
            if self.over.load(Ordering::Relaxed) || !take(fault.group) {
                continue;
            }
            self.inject(fault, seconds, &mut rng);
            release(fault.group);
            // Restart a process that ended by itself, as a service manager does, but not one that a fault keeps down.
            for (which, group) in ["api", "worker 1", "worker 2"].into_iter().enumerate() {
                if take(group) {
                    self.service.spawn(which);
                    release(group);
                }
            }
        }
    }

    fn inject(&self, fault: &Fault, seconds: f64, rng: &mut StdRng) {
        match fault.act {
            Act::Sandbox(names) => {
                let period = self.ledger.fault_started(fault.name);
                for name in names {
                    self.set(name, "on");
                }
                sleep(seconds, &self.over);
                // A fault that cannot be turned off now is turned off at the end of the run.
                for name in names {
                    self.set(name, "off");
                }
                self.ledger.fault_ended(period);
            }
            Act::Kill(which) => {
                let period = self.ledger.fault_started(fault.name);
                self.service.kill(which);
                sleep(seconds, &self.over);
                self.service.spawn(which);
                self.ledger.fault_ended(period);
            }
            Act::Freeze(which) => {
                let period = self.ledger.fault_started(fault.name);
                self.service.signal(which, "STOP");
                sleep(seconds, &self.over);
                self.service.signal(which, "CONT");
                self.ledger.fault_ended(period);
            }
            Act::Requeue => self.requeue(fault.name, rng),
            Act::Preempt => self.at_once(fault.name, || {
                let wrap = "sbatch -p polar --exclusive -N 4 -t 1 -J neighbour -o /dev/null --wrap 'sleep 2'";
                self.sandbox.neighbour(wrap).is_ok()
            }),
            Act::TruncateStatus => self.truncate(fault.name, rng),
        }
    }

    fn set(&self, name: &str, to: &str) {
        let set = || self.sandbox.fault(name, to);
        let outcome = if to == "off" { self.sandbox.with_retries(set) } else { set() };
        if let Err(error) = outcome {
            eprintln!("chaos: {}", one_line(&error));
        }
    }

    /// A fault without duration; counted only if it took place.
    fn at_once(&self, name: &str, act: impl FnOnce() -> bool) {
        if act() {
            let period = self.ledger.fault_started(name);
            self.ledger.fault_ended(period);
        }
    }

    fn requeue(&self, name: &str, rng: &mut StdRng) {
        let Ok(rows) = self.sandbox.admin(&["squeue", "-h", "-t", "R", "-o", "%A %j"]) else { return };
        let ours: Vec<&str> = rows.lines().filter(|row| row.contains(" tao-job-")).collect();
        let Some(id) = ours.choose(rng).and_then(|row| row.split(' ').next()) else { return };
        self.at_once(name, || self.sandbox.admin(&["scontrol", "requeue", id]).is_ok());
    }

    /// Truncates the status file of a training that has written to it and does not end soon.
    fn truncate(&self, name: &str, rng: &mut StdRng) {
        let running: Vec<Uuid> = {
            let ledger = self.ledger.lock();
            let trainings =
                ledger.jobs.iter().filter(|(_, job)| job.kind == Kind::Training && job.status == "Running");
            trainings.map(|(id, _)| *id).collect()
        };
        let Ok(base) = self.sandbox.var("SLURM_BASE_RESULTS_DIR") else { return };
        let Some(id) = running.choose(rng) else { return };
        let file = self.sandbox.local(&format!("{base}/results/{id}/status.json"));
        let text = fs::read_to_string(&file).unwrap_or_default();
        let number = |key: &str| -> Option<u32> {
            let (_, rest) = text.lines().last()?.split_once(&format!("\"{key}\": "))?;
            rest.split([',', '}']).next()?.trim().parse().ok()
        };
        let far_from_done =
            number("epoch").zip(number("max_epoch")).is_some_and(|(epoch, most)| epoch + 2 <= most);
        if far_from_done {
            self.at_once(name, || fs::OpenOptions::new().write(true).truncate(true).open(&file).is_ok());
        }
    }
}

/// Kills the nodes whose jobs request it, and restarts them.
#[derive(Debug)]
pub(crate) struct NodeKiller {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) run: String,
}

impl NodeKiller {
    pub(crate) fn watch(&self) {
        let requests = self.sandbox.local(&format!("{}/kill", run_dir(&self.run)));
        while !self.over.load(Ordering::Relaxed) {
            sleep(0.5, &self.over);
            let Some(entry) = fs::read_dir(&requests).ok().and_then(|mut files| files.next()?.ok()) else {
                continue;
            };
            let _ = fs::remove_file(entry.path());
            let fault = format!("{}-dead", entry.file_name().to_string_lossy());
            if !take("slurm") {
                continue;
            }
            let period = self.ledger.fault_started("node killed by its job");
            // The node may be dead already.
            let cut = self.sandbox.fault(&fault, "on").is_ok();
            sleep(3.0, &self.over);
            if cut && let Err(error) = self.sandbox.with_retries(|| self.sandbox.fault(&fault, "off")) {
                eprintln!("chaos: {}", one_line(&error));
            }
            self.ledger.fault_ended(period);
            release("slurm");
        }
    }
}
