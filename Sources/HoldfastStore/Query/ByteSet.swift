/// A set of byte sequences with lookup without copying: open addressing over one array of bytes.
struct ByteSet {
  /// The bytes of all members, contiguous.
  private var bytes: [UInt8] = []
  /// The start of each member in ``bytes``, and the end of the last one.
  private var starts: [Int] = [0]
  /// The index of a member plus one, by hash; 0 marks a free entry. The size is a power of two, at most half of it used.
  private var table: [UInt32]

  init(_ members: [[UInt8]]) {
    var capacity = 16
    while capacity < members.count * 2 { capacity *= 2 }
    table = Array(repeating: 0, count: capacity)
    for member in members { insert(member) }
  }

  /// Whether a byte sequence is a member.
  func contains(_ run: UnsafeRawBufferPointer) -> Bool { table[place(of: run)] != 0 }

  private mutating func insert(_ member: [UInt8]) {
    let place = member.withUnsafeBytes { self.place(of: $0) }
    if table[place] != 0 { return }
    bytes += member
    starts.append(bytes.count)
    table[place] = UInt32(starts.count - 1)
  }

  /// The index of a byte sequence in the table, or the free index to insert it at.
  private func place(of run: UnsafeRawBufferPointer) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: run)
    let mask = table.count - 1
    var place = hasher.finalize() & mask
    while table[place] != 0, !isMember(Int(table[place]) - 1, run) { place = (place + 1) & mask }
    return place
  }

  private func isMember(_ number: Int, _ run: UnsafeRawBufferPointer) -> Bool {
    let range = starts[number]..<starts[number + 1]
    return range.count == run.count && bytes.withUnsafeBytes { Bytes.order(UnsafeRawBufferPointer(rebasing: $0[range]), run) == 0 }
  }
}
