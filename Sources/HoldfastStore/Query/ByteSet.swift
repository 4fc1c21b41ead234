import HoldfastSupport

/// A set of byte sequences with lookup without copying.
struct ByteSet: ~Copyable {
  /// The bytes of all members, contiguous.
  private var bytes: [UInt8] = []
  /// The start of each member in ``bytes``, and the end of the last one.
  private var starts: [Int] = [0]
  /// The positions of the members in ``starts``.
  private var table: HashTable<PositionSlot>

  init(_ members: [[UInt8]]) {
    table = HashTable(capacity: members.count)
    for member in members {
      let place = member.withUnsafeBytes { index(of: $0) }
      if !table[place].isFree { continue }
      table[place] = PositionSlot(starts.count - 1)
      bytes += member
      starts.append(bytes.count)
    }
  }

  /// Whether a byte sequence is a member.
  func contains(_ run: UnsafeRawBufferPointer) -> Bool { !table[index(of: run)].isFree }

  private func index(of run: UnsafeRawBufferPointer) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: run)
    return bytes.withUnsafeBytes { bytes in
      table.index(hash: hasher.finalize()) { slot in
        Bytes.equal(UnsafeRawBufferPointer(rebasing: bytes[starts[slot.position]..<starts[slot.position + 1]]), run)
      }
    }
  }
}
