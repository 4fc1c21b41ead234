import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The values of one row while they come in any order. Used again for the next row, so that none costs an allocation.
final class JSONRowValues {
  private let slotCount: Int
  /// The number of each slot, or where its bytes begin.
  private let cells: UnsafeMutablePointer<UInt64>
  /// How many bytes each slot has; -1 for a number, -2 for nothing.
  private let lengths: UnsafeMutablePointer<Int>
  @exclusivity(unchecked) private var bytes: UnsafeMutableRawPointer
  @exclusivity(unchecked) private var capacity = 4096
  @exclusivity(unchecked) private var used = 0

  init(slotCount: Int) {
    self.slotCount = slotCount
    cells = .allocate(capacity: max(slotCount, 1))
    lengths = .allocate(capacity: max(slotCount, 1))
    bytes = JSONRowValues.resized(nil, 4096)
  }

  deinit {
    cells.deallocate()
    lengths.deallocate()
    free(bytes)
  }

  private static func resized(_ old: UnsafeMutableRawPointer?, _ capacity: Int) -> UnsafeMutableRawPointer {
    guard let bytes = realloc(old, capacity) else { preconditionFailure("There is no memory for a row of \(capacity) bytes.") }
    return bytes
  }

  @inline(__always) func clear() {
    used = 0
    lengths.update(repeating: -2, count: slotCount)
  }

  @inline(__always) func set(_ slot: Int, integer: Int64) {
    cells[slot] = UInt64(bitPattern: integer)
    lengths[slot] = -1
  }

  @inline(__always) func set(_ slot: Int, real: Double) {
    cells[slot] = real.bitPattern
    lengths[slot] = -1
  }

  @inline(__always) func set(_ slot: Int, bytes text: UnsafeRawBufferPointer) {
    let start = room(text.count)
    if let source = text.baseAddress { start.copyMemory(from: source, byteCount: text.count) }
    take(slot, text.count)
  }

  func set(_ slot: Int, text: String) {
    var text = text
    text.withUTF8 { set(slot, bytes: UnsafeRawBufferPointer($0)) }
  }

  /// Lets somebody write bytes, and say how many; nil for none that are right.
  @inline(__always) func set(_ slot: Int, mostBytes: Int, _ write: (UnsafeMutableRawPointer) -> Int?) -> Bool {
    guard let count = write(room(mostBytes)) else { return false }
    take(slot, count)
    return true
  }

  @inline(__always) private func room(_ count: Int) -> UnsafeMutableRawPointer {
    if used + count > capacity {
      capacity = max(2 * capacity, used + count)
      bytes = JSONRowValues.resized(bytes, capacity)
    }
    return bytes + used
  }

  @inline(__always) private func take(_ slot: Int, _ count: Int) {
    cells[slot] = UInt64(used)
    lengths[slot] = count
    used += count
  }

  /// Appends the values of all slots to a row that was begun.
  @inline(__always) func append(to builder: RowBatchBuilder, kinds: [CellKind]) {
    kinds.withUnsafeBufferPointer { kinds in
      for slot in 0..<kinds.count {
        if lengths[slot] == -2 {
          builder.appendNull()
        } else if lengths[slot] >= 0 {
          builder.append(bytes: UnsafeRawBufferPointer(start: bytes + Int(cells[slot]), count: lengths[slot]))
        } else if kinds[slot] == .real {
          builder.append(real: Double(bitPattern: cells[slot]))
        } else {
          builder.append(integer: Int64(bitPattern: cells[slot]))
        }
      }
    }
  }
}
