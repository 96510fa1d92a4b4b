//! The partitions of a cluster.

use maud::{Markup, html};

use crate::{
    layout::{ago, bytes},
    model::{Moment, Partition, PartitionList},
};

pub(super) fn section(now: Moment, list: &PartitionList) -> Markup {
    html! {
        section {
            div.title-row {
                h2 { "Partitions" }
                @if let Some(at) = list.fetched_on { span.hint { "reported " (ago(now, at)) } }
                @if list.stale { span.stale { "stale" } }
            }
            @if let Some(error) = &list.error { p.problem role="alert" { (error) } }
            @if list.partitions.is_empty() { p.empty { "The cluster has not reported its partitions yet." } } @else {
                div.scroll tabindex="0" role="region" aria-label="Partitions" {
                    table {
                        caption.unseen { "Partitions in the order of the site" }
                        thead { tr { th scope="col" { "Partition" } th scope="col" { "Takes jobs" } th scope="col" { "Nodes" } th scope="col" { "By state" } th scope="col" { "GPUs of a node" } th scope="col" { "CPUs" } th scope="col" { "Memory" } th scope="col" { "Time limit" } th scope="col" { "Most nodes" } } }
                        tbody { @for partition in &list.partitions { (row(partition)) } }
                    }
                }
            }
        }
    }
}

fn row(partition: &Partition) -> Markup {
    html! {
        tr {
            th.name scope="row" { (partition.name) @if partition.is_default { span.hint { " default" } } }
            td { (partition.availability) }
            td.number { (partition.nodes) }
            td {
                @for (state, number) in &partition.nodes_by_state { span.field { (number) " " (state) } " " }
            }
            td {
                @if let Some(gpus) = partition.gpus_per_node { (gpus) }
                @for kind in &partition.gpu_types { " " (kind) }
            }
            td.number { @if let Some(cpus) = partition.cpus_per_node { (cpus) } }
            td.number { @if let Some(memory) = partition.memory_mib_per_node { (bytes(memory.saturating_mul(1 << 20))) } }
            td { @if let Some(limit) = &partition.time_limit { (limit) } }
            td.number { @if let Some(most) = partition.max_nodes { (most) } @else { "any" } }
        }
    }
}
