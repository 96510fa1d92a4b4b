//! The options of a job beyond its size and time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Account,
    options::{
        constraint::Constraint,
        gres::Gres,
        memory::MemoryRequest,
        named::{OptionName, OptionValue},
        node_set::NodeSet,
        text::OptionText,
        words::{GresType, Licenses, Qos, Reservation, Switches},
    },
};

/// Options of sbatch that are there only if the job or its cluster asks for them.
///
/// A job of an earlier release has none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubmitOptions {
    /// The account to charge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// The quality of service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
    /// The reservations to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// How much to lower the priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// The owner's comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<OptionText>,
    /// The memory; the partition's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRequest>,
    /// The type of the GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<GresType>,
    /// Further generic resources of each node. GPUs among them take the place of the number of GPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gres: Vec<Gres>,
    /// The features of its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Constraint>,
    /// Nodes that it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelist: Option<NodeSet>,
    /// Nodes that it must not get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<NodeSet>,
    /// Licenses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licenses: Option<Licenses>,
    /// The most leaf switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<Switches>,
    /// Any other options.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<OptionName, OptionValue>,
}

impl SubmitOptions {
    /// These options, completed by the cluster's defaults.
    #[must_use]
    pub fn or(self, defaults: &Self) -> Self {
        let Self {
            account,
            qos,
            reservation,
            nice,
            comment,
            memory,
            gpu_type,
            gres,
            constraint,
            nodelist,
            exclude,
            licenses,
            switches,
            others,
        } = self;
        let mut all = defaults.others.clone();
        all.extend(others);
        Self {
            account: account.or_else(|| defaults.account.clone()),
            qos: qos.or_else(|| defaults.qos.clone()),
            reservation: reservation.or_else(|| defaults.reservation.clone()),
            nice: nice.or(defaults.nice),
            comment: comment.or_else(|| defaults.comment.clone()),
            memory: memory.or(defaults.memory),
            // GPUs of several types contradict one type.
            gpu_type: gpu_type
                .or_else(|| defaults.gpu_type.clone())
                .filter(|_| !gres.iter().any(Gres::is_gpu)),
            gres: if gres.is_empty() { defaults.gres.clone() } else { gres },
            constraint: constraint.or_else(|| defaults.constraint.clone()),
            nodelist: nodelist.or_else(|| defaults.nodelist.clone()),
            exclude: exclude.or_else(|| defaults.exclude.clone()),
            licenses: licenses.or_else(|| defaults.licenses.clone()),
            switches: switches.or_else(|| defaults.switches.clone()),
            others: all,
        }
    }

    /// Whether the line of an option is left out.
    pub fn drops(&self, option: &str) -> bool {
        self.others.iter().any(|(name, value)| name.as_str() == option && *value == OptionValue::Drop)
    }
}
