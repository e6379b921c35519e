//! A core that is driven through its host, over a stream of bytes or the pins of a UART: kernels with their drivers and
//! checks.

mod bench;
mod damage;
mod kernels;
mod launches;
mod metrics;
