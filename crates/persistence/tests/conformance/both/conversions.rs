//! Calls about the conversion of images.

use std::collections::BTreeSet;

use domain::{Conversion, ConversionState, FileFault, Timestamp};
use persistence::{
    ConversionLease, ConversionRecord, ConversionRecords as _, ConversionTurns as _, ImageRequest,
    ImageRequests as _,
};
use testkit::Dice;
use uuid::Uuid;

use super::{Both, TERMS, dgx, outcome};
use crate::{
    moves,
    sides::{LEASE, Side as _},
};

/// A conversion without its id and its time of damage, which each store chooses.
fn face(conversion: &Conversion) -> String {
    let damaged_at = conversion.damaged_at.map(|_| Timestamp::UNIX_EPOCH);
    format!("{:?}", Conversion { id: Uuid::nil(), damaged_at, ..conversion.clone() })
}

impl Both {
    pub(super) async fn want_image(&mut self) {
        let (job, number) = (self.any_job(), self.dice.below(2));
        let wish = ImageRequest {
            job,
            cache_path: format!("/lustre/cache/{number}.sqsh").parse().unwrap(),
            image: format!("nvcr.io/nvidia/tao:{number}").parse().unwrap(),
            fresh: self.dice.chance(300),
        };
        let (real, memory) = of_both!(self, request_images(&dgx(), std::slice::from_ref(&wish)));
        let (real, memory) = (real.unwrap(), memory.unwrap());
        let told = |found: &[Conversion]| found.iter().map(face).collect::<BTreeSet<_>>();
        self.same("request_images", (told(&real), told(&memory)));
        match self.dice.below(4) {
            3 => {
                let fault = if self.dice.chance(500) { FileFault::Damaged } else { FileFault::Missing };
                let done = of_both!(self, distrust_files(&dgx(), &[(&wish.cache_path, fault)]));
                self.same("distrust_files", (outcome(&done.0), outcome(&done.1)));
            }
            0 => {
                let real = real.iter().collect::<Vec<_>>();
                self.real.store().reopen_conversions(&dgx(), &real).await.unwrap();
                let memory = memory.iter().collect::<Vec<_>>();
                self.memory.store().reopen_conversions(&dgx(), &memory).await.unwrap();
            }
            1 => {
                let done = of_both!(self, recheck_conversions(&dgx(), &[job]));
                self.same("recheck_conversions", (outcome(&done.0), outcome(&done.1)));
            }
            _ => {
                let known = |one: &Conversion| Conversion { version: 1, ..one.clone() };
                let (real, memory) = (known(&real[0]), known(&memory[0]));
                self.real.store().wake_changed(&[(job, &real)]).await.unwrap();
                self.memory.store().wake_changed(&[(job, &memory)]).await.unwrap();
            }
        }
    }

    pub(super) async fn acquire_conversions(&mut self) {
        let token = self.token();
        let (real, memory) = of_both!(self, acquire_conversions(&dgx(), token, TERMS));
        let (real, memory) = (real.unwrap(), memory.unwrap());
        let told = |lease: &ConversionLease| -> BTreeSet<String> {
            lease.conversions.iter().map(|(one, demand)| format!("{} {demand:?}", face(one))).collect()
        };
        self.same("acquire_conversions", (told(&real), told(&memory)));
        if !real.conversions.is_empty() {
            self.conversions.push((real, memory));
        }
    }

    pub(super) async fn record_conversions(&mut self) {
        let Some((real, memory)) = self.conversions.pop() else { return };
        let (now, seed) = (self.now, self.dice.roll());
        let made = |lease: &ConversionLease| -> Vec<ConversionRecord> {
            let mut conversions: Vec<_> = lease.conversions.iter().map(|(one, _)| one).collect();
            conversions.sort_by_key(|one| one.cache_path.to_string());
            let mut dice = Dice::new(seed);
            let after = |one: &&Conversion| {
                let (conversion, due_at) = moves::convert(one, &mut dice, now);
                ConversionRecord { conversion, due_at }
            };
            conversions.iter().map(after).collect()
        };
        if self.dice.chance(300) {
            let again_in = self.dice.chance(500).then_some(LEASE);
            let ids = |lease: &ConversionLease| {
                lease.conversions.iter().map(|(one, _)| (one.id, None)).collect::<Vec<_>>()
            };
            let extended = self.real.store().extend_conversions(&real, LEASE).await;
            let other = self.memory.store().extend_conversions(&memory, LEASE).await;
            self.same("extend_conversions", (outcome(&extended), outcome(&other)));
            self.real.store().put_off_conversions(&real, &ids(&real), again_in).await.unwrap();
            self.memory.store().put_off_conversions(&memory, &ids(&memory), again_in).await.unwrap();
            return;
        }
        let release = self.dice.chance(700);
        let stored = self.real.store().record_conversions(&real, &dgx(), &made(&real), release, now).await;
        let other =
            self.memory.store().record_conversions(&memory, &dgx(), &made(&memory), release, now).await;
        self.same("record_conversions", (stored.unwrap().len(), other.unwrap().len()));
    }

    pub(super) async fn move_conversions(&mut self) {
        let (real, memory) = of_both!(self, active_conversions(&dgx()));
        let (real, memory) = (real.unwrap(), memory.unwrap());
        let told = |found: &[Conversion]| found.iter().map(face).collect::<BTreeSet<_>>();
        self.same("active_conversions", (told(&real), told(&memory)));
        let finished = self.dice.chance(500);
        let seen = |found: Vec<Conversion>| -> Vec<Conversion> {
            let state = if finished { ConversionState::Finishing } else { ConversionState::Running };
            found.into_iter().map(|one| Conversion { state, ..one }).collect()
        };
        self.real.store().record_observed_conversions(&dgx(), &seen(real)).await.unwrap();
        self.memory.store().record_observed_conversions(&dgx(), &seen(memory)).await.unwrap();
    }
}
