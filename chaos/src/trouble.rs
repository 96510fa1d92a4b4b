//! Those who break things: each lane has one fault on at a time, and two lanes never one of the same group.

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
    sandbox::{Sandbox, place},
    service::Service,
};

pub(crate) const LANES: u64 = 2;

#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) service: Arc<Service>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) catalogue: Vec<Fault>,
    pub(crate) over: Arc<AtomicBool>,
}

/// Groups of which a fault is on.
static TAKEN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);

fn take(group: &'static str) -> bool {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(group)
}

fn give_back(group: &'static str) {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().remove(group);
}

/// Sleeps, but not beyond the end.
fn sleep(seconds: f64, over: &AtomicBool) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end && !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50).min(end.saturating_duration_since(Instant::now())));
    }
}

impl Trouble {
    /// Breaks one thing after the other until it is over.
    pub(crate) fn make(&self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        while !self.over.load(Ordering::Relaxed) {
            sleep(rng.random_range(0.5..5.0), &self.over);
            let Ok(fault) = self.catalogue.choose_weighted(&mut rng, |fault| fault.weight) else { return };
            let seconds = rng.random_range(fault.seconds.clone());
            if self.over.load(Ordering::Relaxed) || !take(fault.group) {
                continue;
            }
            self.inflict(fault, seconds, &mut rng);
            give_back(fault.group);
            // A process that ended by itself is started again, as a service manager does; but not one that lies killed.
            for (which, group) in ["api", "worker 1", "worker 2"].into_iter().enumerate() {
                if take(group) {
                    self.service.spawn(which);
                    give_back(group);
                }
            }
        }
    }

    fn inflict(&self, fault: &Fault, seconds: f64, rng: &mut StdRng) {
        match fault.act {
            Act::Sandbox(names) => {
                let broken = self.ledger.broken(fault.name);
                for name in names {
                    self.set(name, "on");
                }
                sleep(seconds, &self.over);
                // What could not be ended now is ended with all others.
                for name in names {
                    self.set(name, "off");
                }
                self.ledger.mended(broken);
            }
            Act::Kill(which) => {
                let broken = self.ledger.broken(fault.name);
                self.service.kill(which);
                sleep(seconds, &self.over);
                self.service.spawn(which);
                self.ledger.mended(broken);
            }
            Act::Freeze(which) => {
                let broken = self.ledger.broken(fault.name);
                self.service.signal(which, "STOP");
                sleep(seconds, &self.over);
                self.service.signal(which, "CONT");
                self.ledger.mended(broken);
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
        let outcome = if to == "off" { self.sandbox.patiently(set) } else { set() };
        if let Err(error) = outcome {
            eprintln!("chaos: {error:#}");
        }
    }

    /// A fault that is over as soon as it is there; counted only if it came about.
    fn at_once(&self, name: &str, act: impl FnOnce() -> bool) {
        if act() {
            let broken = self.ledger.broken(name);
            self.ledger.mended(broken);
        }
    }

    fn requeue(&self, name: &str, rng: &mut StdRng) {
        let Ok(rows) = self.sandbox.admin(&["squeue", "-h", "-t", "R", "-o", "%A %j"]) else { return };
        let ours: Vec<&str> = rows.lines().filter(|row| row.contains(" tao-job-")).collect();
        let Some(id) = ours.choose(rng).and_then(|row| row.split(' ').next()) else { return };
        self.at_once(name, || self.sandbox.admin(&["scontrol", "requeue", id]).is_ok());
    }

    /// Of a training that has said something and is not about to end.
    fn truncate(&self, name: &str, rng: &mut StdRng) {
        let running: Vec<Uuid> = {
            let ledger = self.ledger.lock();
            let trainings =
                ledger.jobs.iter().filter(|(_, job)| job.kind == Kind::Training && job.status == "Running");
            trainings.map(|(id, _)| *id).collect()
        };
        let Ok(base) = self.sandbox.var("SLURM_BASE_RESULTS_DIR") else { return };
        let Some(id) = running.choose(rng) else { return };
        let file = self.sandbox.seen(&format!("{base}/results/{id}/status.json"));
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

/// Cuts the power of the nodes whose jobs ask for it, and brings them back.
#[derive(Debug)]
pub(crate) struct NodeKiller {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) run: String,
}

impl NodeKiller {
    pub(crate) fn watch(&self) {
        let wanted = self.sandbox.seen(&format!("{}/kill", place(&self.run)));
        while !self.over.load(Ordering::Relaxed) {
            sleep(0.5, &self.over);
            let Some(entry) = fs::read_dir(&wanted).ok().and_then(|mut files| files.next()?.ok()) else {
                continue;
            };
            let _ = fs::remove_file(entry.path());
            let fault = format!("{}-dead", entry.file_name().to_string_lossy());
            if !take("slurm") {
                continue;
            }
            let broken = self.ledger.broken("node killed by its job");
            // The same node may be dead already.
            let cut = self.sandbox.fault(&fault, "on").is_ok();
            sleep(3.0, &self.over);
            if cut && let Err(error) = self.sandbox.patiently(|| self.sandbox.fault(&fault, "off")) {
                eprintln!("chaos: {error:#}");
            }
            self.ledger.mended(broken);
            give_back("slurm");
        }
    }
}
