//! The images for jobs of TAO's own services.

use domain::ContainerImages;

use super::{problems::Problems, settings::Tao};

pub(super) fn images(settings: &Tao, problems: &mut Problems) -> ContainerImages {
    let default = settings.default_image.as_deref();
    let default = default.and_then(|text| problems.parse("tao.default_image", text));
    let named = settings.images.iter().filter_map(|(network, text)| {
        Some((network.clone(), problems.parse(format_args!("tao.images.{network}"), text)?))
    });
    ContainerImages { by_network: named.collect(), default }
}
