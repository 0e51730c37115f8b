"""Rows on a device: PyTorch tensors, and CuPy arrays read as such, where they lie."""

from separatrix.data.device.block import DeviceBlock as DeviceBlock
from separatrix.data.device.source import device_source as device_source
from separatrix.data.device.tensors import beside as beside
from separatrix.data.device.tensors import moved as moved
from separatrix.data.device.tensors import on_device as on_device
