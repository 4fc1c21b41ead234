import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Describes invalid data in a section.
struct SectionFault: Error {
  var reason: String

  init(_ reason: String) { self.reason = reason }
}

/// Decodes a section of rows into a batch. It checks that every value is valid for its attribute; readers of the batch don't check
/// again.
struct RowSectionDecoder {
  private let entity: ManagedObjectModel.Entity
  private let idPrefix: ManagedObjectID
  private let mayBeExternal: [Bool]
  private var layout: RowLayout { entity.layout }

  init(_ entity: ManagedObjectModel.Entity, identity: StoreIdentity) {
    self.entity = entity
    idPrefix = identity.prefix(for: entity)
    let external = entity.externalSlots
    mayBeExternal = entity.slotIndexes.map { external.contains($0) }
  }

  /// The numbers of a column: a base, and an offset for each row.
  private struct Whole {
    var width: Int
    var base: Int64
    var offsets: UnsafeRawBufferPointer
  }

  /// The positions of a column's components in a section.
  private struct Column {
    /// One bit per row: whether it has a value. Nil if all rows have one.
    var presence: UnsafeRawBufferPointer?
    var form: RealForm?
    var numbers = Whole(width: 0, base: 0, offsets: UnsafeRawBufferPointer(start: nil, count: 0))
    var external: UnsafeRawBufferPointer?
    var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// - Parameters:
  ///   - section: The bytes.
  ///   - count: The number of rows according to the directory.
  ///   - keys: The key of the first and of the last row.
  func batch(_ section: UnsafeRawBufferPointer, count: Int, keys: ClosedRange<Int64>) throws(SectionFault) -> RowBatch {
    var reader = ByteReader(section)
    // Each row's key takes four bytes, which limits the number of rows.
    guard count > 0, count <= section.count / 4 else { throw SectionFault("It is too short for its rows.") }
    let rowKeys = try self.keys(&reader, count)
    let versions = try whole(&reader, count)
    var columns: [Column?] = []
    for slot in layout.slots { columns.append(try column(&reader, count, slot)) }
    if reader.remaining > 0 { throw SectionFault("It has data after its rows.") }
    let bytesCount = columns.reduce(0) { $0 + ($1?.bytes.count ?? 0) }
    let batch = try RowBatch.filled(layout: layout, idPrefix: idPrefix, count: count, bytesCount: bytesCount) {
      base throws(SectionFault) in
      let target = Target(base: base, stride: layout.fixedByteCount, count: count)
      try fill(keys: rowKeys, in: keys, target)
      try fill(versions, presence: nil, in: 1...Int64.max, target, at: 8)
      markFull(columns, target)
      var place = count * layout.fixedByteCount
      for (slot, column) in zip(layout.slots, columns) { if let column { try fill(column, slot, target, &place) } }
    }
    guard let batch else { throw SectionFault("Its rows need at least 2 GiB of memory, or more than is available.") }
    return batch
  }

  // MARK: Finding the columns

  private func keys(_ reader: inout ByteReader, _ count: Int) throws(SectionFault) -> Whole {
    guard let width = reader.number(UInt8.self), width == 4 || width == 8, let offsets = reader.take(Int(width) * count) else {
      throw SectionFault("Its keys are malformed.")
    }
    return Whole(width: Int(width), base: 0, offsets: offsets)
  }

  private func whole(_ reader: inout ByteReader, _ count: Int) throws(SectionFault) -> Whole {
    guard let width = reader.number(UInt8.self), [0, 1, 2, 4, 8].contains(width), let base = reader.number(Int64.self),
      let offsets = reader.take(Int(width) * count)
    else { throw SectionFault("A column of numbers is malformed.") }
    return Whole(width: Int(width), base: base, offsets: offsets)
  }

  /// - Returns: Nil if no row has a value in the column.
  private func column(_ reader: inout ByteReader, _ count: Int, _ slot: SlotIndex) throws(SectionFault) -> Column? {
    var column = Column()
    switch reader.number(UInt8.self) {
    case 0: return nil
    case 1: break
    case 2: column.presence = try bits(&reader, count)
    default: throw SectionFault("The presence bitmap for \(entity.slots[slot].name) is missing.")
    }
    switch layout.kinds[slot] {
    case .integer, .key: column.numbers = try whole(&reader, count)
    case .real: try findReals(&reader, count, slot, &column)
    case .bytes: try findBytes(&reader, count, slot, &column)
    }
    return column
  }

  private func bits(_ reader: inout ByteReader, _ count: Int) throws(SectionFault) -> UnsafeRawBufferPointer {
    guard let bits = reader.take((count + 7) / 8) else { throw SectionFault("A bitmap is truncated.") }
    return bits
  }

  private func findReals(_ reader: inout ByteReader, _ count: Int, _ slot: SlotIndex, _ column: inout Column) throws(SectionFault) {
    let form = reader.number(UInt8.self).flatMap { RealForm(rawValue: $0) }
    guard let form, (form == .single) == (layout.columns[slot] == .attribute(.float)) else {
      throw SectionFault("The numbers of \(entity.slots[slot].name) are malformed.")
    }
    column.form = form
    if form == .whole {
      column.numbers = try whole(&reader, count)
    } else if let numbers = reader.take(Int(form.rawValue) * count) {
      column.numbers.offsets = numbers
    } else {
      throw SectionFault("The numbers of \(entity.slots[slot].name) are malformed.")
    }
  }

  private func findBytes(_ reader: inout ByteReader, _ count: Int, _ slot: SlotIndex, _ column: inout Column) throws(SectionFault) {
    switch reader.number(UInt8.self) {
    case 0: break
    case 1 where mayBeExternal[slot]: column.external = try bits(&reader, count)
    default: throw SectionFault("The bitmap of external values for \(entity.slots[slot].name) is missing.")
    }
    column.numbers = try whole(&reader, count)
    guard let total = total(column, count, most: reader.remaining), let bytes = reader.take(total) else {
      throw SectionFault("The values of \(entity.slots[slot].name) are longer than the section.")
    }
    column.bytes = bytes
  }

  /// The total number of bytes of the values; nil if that exceeds `most`.
  private func total(_ column: Column, _ count: Int, most: Int) -> Int? {
    guard column.numbers.width < 8, column.numbers.base >= 0, column.numbers.base <= most else { return nil }
    var sum = 0
    for index in 0..<count where isSet(column.presence, index) {
      sum += length(column.numbers, index)
      if sum > most { return nil }
    }
    return sum
  }

  @inline(__always) private func isSet(_ bits: UnsafeRawBufferPointer?, _ index: Int) -> Bool {
    guard let bits else { return true }
    return bits[index >> 3] & 1 << UInt8(index & 7) != 0
  }

  /// The length of a value. The base and the offset are both small.
  @inline(__always) private func length(_ numbers: Whole, _ index: Int) -> Int {
    switch numbers.width {
    case 0: Int(numbers.base)
    case 1: Int(numbers.base) + Int(numbers.offsets[index])
    case 2: Int(numbers.base) + Int(UInt16(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 2 * index, as: UInt16.self)))
    default: Int(numbers.base) + Int(UInt32(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)))
    }
  }

  // MARK: Filling

  /// The rows being filled.
  private struct Target {
    var base: UnsafeMutableRawPointer
    var stride: Int
    var count: Int

    @inline(__always) func store(_ value: UInt64, _ index: Int, at offset: Int) {
      base.storeBytes(of: value, toByteOffset: index &* stride &+ offset, as: UInt64.self)
    }

    /// Marks a slot as having a value.
    @inline(__always) func mark(_ index: Int, _ slot: SlotIndex) {
      let word = index &* stride &+ RowLayout.presenceOffset(slot)
      base.storeBytes(of: base.load(fromByteOffset: word, as: UInt64.self) | slot.bit, toByteOffset: word, as: UInt64.self)
    }
  }

  private func fill(keys numbers: Whole, in range: ClosedRange<Int64>, _ target: Target) throws(SectionFault) {
    guard TableLoader.keys.contains(ObjectKey(range.lowerBound)), TableLoader.keys.contains(ObjectKey(range.upperBound)) else {
      throw SectionFault("Its keys are out of range.")
    }
    var last = range.lowerBound - 1
    for index in 0..<target.count {
      let offset =
        numbers.width == 4
        ? UInt64(UInt32(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)))
        : UInt64(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
      guard offset <= UInt64(range.upperBound - range.lowerBound) else { throw SectionFault("Its keys don't match the directory.") }
      let key = range.lowerBound + Int64(offset)
      if key <= last { throw SectionFault("Its keys are out of order.") }
      last = key
      target.store(UInt64(bitPattern: key), index, at: 0)
    }
    if last != range.upperBound || target.base.load(as: Int64.self) != range.lowerBound {
      throw SectionFault("Its keys don't match the directory.")
    }
  }

  /// Marks the columns that have a value in every row, for all rows at once.
  private func markFull(_ columns: [Column?], _ target: Target) {
    for block in stride(from: 0, to: columns.count, by: 64) {
      var bits: UInt64 = 0
      for slot in block..<min(block + 64, columns.count) {
        if let column = columns[slot], column.presence == nil { bits |= 1 << UInt64(slot - block) }
      }
      let offset = RowLayout.presenceOffset(SlotIndex(block))
      if bits != 0 { for index in 0..<target.count { target.store(bits, index, at: offset) } }
    }
  }

  private func fill(_ column: Column, _ slot: SlotIndex, _ target: Target, _ place: inout Int) throws(SectionFault) {
    if column.presence != nil { for index in 0..<target.count where isSet(column.presence, index) { target.mark(index, slot) } }
    let offset = RowLayout.cellOffset(slot)
    switch layout.columns[slot] {
    case .toOne: try fill(column.numbers, presence: column.presence, in: TableLoader.keys.rawValues, target, at: offset)
    case .attribute(let type):
      switch type.cellKind {
      case .integer, .key:
        try fill(column.numbers, presence: column.presence, in: type.integerRange ?? .min ... .max, target, at: offset)
      case .real: try fillReals(column, target, at: offset)
      case .bytes: try fillBytes(column, slot, type, target, &place)
      }
    }
  }

  /// Stores the numbers of the rows that have a value, and checks that they are in a range.
  private func fill(
    _ numbers: Whole, presence: UnsafeRawBufferPointer?, in range: ClosedRange<Int64>, _ target: Target, at offset: Int
  ) throws(SectionFault) {
    if numbers.width == 8 { return try fillWide(numbers, presence, range, target, offset) }
    var most: UInt32 = 0
    func each(_ added: (Int) -> UInt32) {
      for index in 0..<target.count where isSet(presence, index) {
        let added = added(index)
        most = max(most, added)
        target.store(UInt64(bitPattern: numbers.base &+ Int64(added)), index, at: offset)
      }
    }
    let offsets = numbers.offsets
    switch numbers.width {
    case 0: each { _ in 0 }
    case 1: each { UInt32(offsets[$0]) }
    case 2: each { UInt32(UInt16(littleEndian: offsets.loadUnaligned(fromByteOffset: 2 * $0, as: UInt16.self))) }
    default: each { UInt32(littleEndian: offsets.loadUnaligned(fromByteOffset: 4 * $0, as: UInt32.self)) }
    }
    let (largest, overflow) = numbers.base.addingReportingOverflow(Int64(most))
    if overflow || numbers.base < range.lowerBound || largest > range.upperBound { throw SectionFault("A number is out of its range.") }
  }

  private func fillWide(
    _ numbers: Whole, _ presence: UnsafeRawBufferPointer?, _ range: ClosedRange<Int64>, _ target: Target, _ offset: Int
  ) throws(SectionFault) {
    for index in 0..<target.count where isSet(presence, index) {
      let value = numbers.base &+ Int64(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 8 * index, as: Int64.self))
      if !range.contains(value) { throw SectionFault("A number is out of its range.") }
      target.store(UInt64(bitPattern: value), index, at: offset)
    }
  }

  private func fillReals(_ column: Column, _ target: Target, at offset: Int) throws(SectionFault) {
    let numbers = column.numbers.offsets
    switch column.form {
    case .whole:
      let limit = Int64(RealForm.wholeLimit)
      try fill(column.numbers, presence: column.presence, in: -limit...limit, target, at: offset)
      for index in 0..<target.count where isSet(column.presence, index) {
        let value = target.base.load(fromByteOffset: index &* target.stride &+ offset, as: Int64.self)
        target.store(Double(value).bitPattern, index, at: offset)
      }
    case .single:
      for index in 0..<target.count where isSet(column.presence, index) {
        let value = Float(bitPattern: UInt32(littleEndian: numbers.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)))
        target.store((value == 0 ? 0 : Double(value)).bitPattern, index, at: offset)
      }
    case .double:
      for index in 0..<target.count where isSet(column.presence, index) {
        let value = Double(bitPattern: UInt64(littleEndian: numbers.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self)))
        target.store((value == 0 ? 0 : value).bitPattern, index, at: offset)
      }
    case nil: break
    }
  }

  // MARK: Text and other bytes

  private func fillBytes(
    _ column: Column, _ slot: SlotIndex, _ type: AttributeType, _ target: Target, _ place: inout Int
  ) throws(SectionFault) {
    if let source = column.bytes.baseAddress { (target.base + place).copyMemory(from: source, byteCount: column.bytes.count) }
    let isText = type == .string || type == .uri || type == .objectID || type == .decimal
    if isText && !UTF8Check.isValid(column.bytes) { throw SectionFault("The text of \(entity.slots[slot].name) isn't UTF-8.") }
    let offset = RowLayout.cellOffset(slot)
    var start = 0
    for index in 0..<target.count where isSet(column.presence, index) {
      let length = length(column.numbers, index)
      let bytes = UnsafeRawBufferPointer(rebasing: column.bytes[start..<start + length])
      // The column as a whole was checked. A value is valid too, unless it begins inside a character.
      if isText, let first = bytes.first, first & 0xC0 == 0x80 { throw SectionFault("A text begins inside a UTF-8 character.") }
      var cell = UInt64(place + start - index * target.stride) | UInt64(length) << 32
      if column.external != nil && isSet(column.external, index) {
        if length != 16 { throw SectionFault("The name of an external file is invalid.") }
        cell |= RowLayout.externalBit
      } else if !isText || type == .objectID || type == .decimal {
        try check(bytes, type, slot)
      }
      target.store(cell, index, at: offset)
      start += length
    }
    place += column.bytes.count
  }

  private func check(_ bytes: UnsafeRawBufferPointer, _ type: AttributeType, _ slot: SlotIndex) throws(SectionFault) {
    let isRight =
      switch type {
      case .uuid: bytes.count == 16
      case .decimal: NumberText.decimal(bytes).map { $0.description.utf8.elementsEqual(bytes) } ?? false
      case .objectID: ObjectIDText.isURI(bytes)
      default: true
      }
    if !isRight { throw SectionFault("A value of \(entity.slots[slot].name) isn't valid for its type.") }
  }
}
