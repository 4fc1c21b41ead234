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
#else
  import Darwin
#endif

/// What is wrong with a section.
struct SectionFault: Error {
  var reason: String

  init(_ reason: String) { self.reason = reason }
}

/// Makes a batch of a section of rows, and sees to it that every value is one that its attribute can have: whoever reads the batch
/// looks at nothing again.
struct PageDecoder {
  private let entity: ManagedObjectModel.Entity
  private let idPrefix: ManagedObjectID
  private let mayBeExternal: [Bool]
  private var layout: RowLayout { entity.layout }

  init(_ entity: ManagedObjectModel.Entity, identity: StoreIdentity) {
    self.entity = entity
    idPrefix = identity.prefix(for: entity)
    let external = entity.externalSlots
    mayBeExternal = entity.slots.indices.map { external.contains($0) }
  }

  /// Numbers of a column: a base, and what is added to it for each row.
  private struct Whole {
    var width: Int
    var base: Int64
    var offsets: UnsafeRawBufferPointer
  }

  /// Where the parts of a column lie in a section.
  private struct Column {
    /// The bits of rows that have a value; nil when all have one.
    var presence: UnsafeRawBufferPointer?
    var form: RealForm?
    var numbers = Whole(width: 0, base: 0, offsets: UnsafeRawBufferPointer(start: nil, count: 0))
    var external: UnsafeRawBufferPointer?
    var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// - Parameters:
  ///   - section: the bytes.
  ///   - count: how many rows they are said to be.
  ///   - keys: the key of the first row and that of the last.
  func batch(_ section: UnsafeRawBufferPointer, count: Int, keys: ClosedRange<Int64>) throws(SectionFault) -> RowBatch {
    var reader = ByteReader(section)
    // Each row's key takes four bytes, so no more rows come than there are bytes for.
    guard count > 0, count <= section.count / 4 else { throw SectionFault("It has too few bytes for its rows.") }
    let rowKeys = try self.keys(&reader, count)
    let versions = try whole(&reader, count)
    var columns: [Column?] = []
    for slot in layout.kinds.indices { columns.append(try column(&reader, count, slot)) }
    if reader.remaining > 0 { throw SectionFault("It has more bytes than its rows.") }
    let bytesCount = columns.reduce(0) { $0 + ($1?.bytes.count ?? 0) }
    var fault: SectionFault?
    let batch = RowBatch.filled(layout: layout, idPrefix: idPrefix, count: count, bytesCount: bytesCount) { base in
      do throws(SectionFault) {
        let target = Target(base: base, stride: layout.fixedByteCount, count: count)
        try fill(keys: rowKeys, in: keys, target)
        try fill(versions, presence: nil, in: 1...Int64.max, target, at: 8)
        markFull(columns, target)
        var place = count * layout.fixedByteCount
        for (slot, column) in columns.enumerated() { if let column { try fill(column, slot, target, &place) } }
      } catch {
        fault = error
      }
    }
    if let fault { throw fault }
    guard let batch else { throw SectionFault("Its rows are larger than 2 GiB, or than there is memory.") }
    return batch
  }

  // MARK: Finding the columns

  private func keys(_ reader: inout ByteReader, _ count: Int) throws(SectionFault) -> Whole {
    guard let width = reader.number(UInt8.self), width == 4 || width == 8, let offsets = reader.take(Int(width) * count) else {
      throw SectionFault("Its keys cannot be read.")
    }
    return Whole(width: Int(width), base: 0, offsets: offsets)
  }

  private func whole(_ reader: inout ByteReader, _ count: Int) throws(SectionFault) -> Whole {
    guard let width = reader.number(UInt8.self), [0, 1, 2, 4, 8].contains(width), let base = reader.number(Int64.self),
      let offsets = reader.take(Int(width) * count)
    else { throw SectionFault("A column of numbers cannot be read.") }
    return Whole(width: Int(width), base: base, offsets: offsets)
  }

  /// - Returns: nil for a column in which no row has a value.
  private func column(_ reader: inout ByteReader, _ count: Int, _ slot: Int) throws(SectionFault) -> Column? {
    var column = Column()
    switch reader.number(UInt8.self) {
    case 0: return nil
    case 1: break
    case 2: column.presence = try bits(&reader, count)
    default: throw SectionFault("It is not said which rows have a value of \(entity.slots[slot].name).")
    }
    switch layout.kinds[slot] {
    case .integer, .key: column.numbers = try whole(&reader, count)
    case .real: try findReals(&reader, count, slot, &column)
    case .bytes: try findBytes(&reader, count, slot, &column)
    }
    return column
  }

  private func bits(_ reader: inout ByteReader, _ count: Int) throws(SectionFault) -> UnsafeRawBufferPointer {
    guard let bits = reader.take((count + 7) / 8) else { throw SectionFault("A column of bits cannot be read.") }
    return bits
  }

  private func findReals(_ reader: inout ByteReader, _ count: Int, _ slot: Int, _ column: inout Column) throws(SectionFault) {
    let form = reader.number(UInt8.self).flatMap { RealForm(rawValue: $0) }
    guard let form, (form == .single) == (layout.columns[slot] == .attribute(.float)) else {
      throw SectionFault("The numbers of \(entity.slots[slot].name) cannot be read.")
    }
    column.form = form
    if form == .whole {
      column.numbers = try whole(&reader, count)
    } else if let numbers = reader.take(Int(form.rawValue) * count) {
      column.numbers.offsets = numbers
    } else {
      throw SectionFault("The numbers of \(entity.slots[slot].name) cannot be read.")
    }
  }

  private func findBytes(_ reader: inout ByteReader, _ count: Int, _ slot: Int, _ column: inout Column) throws(SectionFault) {
    switch reader.number(UInt8.self) {
    case 0: break
    case 1 where mayBeExternal[slot]: column.external = try bits(&reader, count)
    default: throw SectionFault("It is not said which values of \(entity.slots[slot].name) lie in files.")
    }
    column.numbers = try whole(&reader, count)
    guard let total = total(column, count, most: reader.remaining), let bytes = reader.take(total) else {
      throw SectionFault("The values of \(entity.slots[slot].name) are longer than the section.")
    }
    column.bytes = bytes
  }

  /// How many bytes values have together; nil for more than there are.
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

  /// The length of a value; its base is small, and so is what is added.
  @inline(__always) private func length(_ numbers: Whole, _ index: Int) -> Int {
    switch numbers.width {
    case 0: Int(numbers.base)
    case 1: Int(numbers.base) + Int(numbers.offsets[index])
    case 2: Int(numbers.base) + Int(UInt16(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 2 * index, as: UInt16.self)))
    default: Int(numbers.base) + Int(UInt32(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)))
    }
  }

  // MARK: Filling

  /// The rows that are made.
  private struct Target {
    var base: UnsafeMutableRawPointer
    var stride: Int
    var count: Int

    @inline(__always) func store(_ value: UInt64, _ index: Int, at offset: Int) {
      base.storeBytes(of: value, toByteOffset: index &* stride &+ offset, as: UInt64.self)
    }

    /// Says that a slot has a value.
    @inline(__always) func mark(_ index: Int, _ slot: Int) {
      let word = index &* stride &+ RowLayout.presenceOffset(slot)
      base.storeBytes(of: base.load(fromByteOffset: word, as: UInt64.self) | 1 << UInt64(slot & 63), toByteOffset: word, as: UInt64.self)
    }
  }

  private func fill(keys numbers: Whole, in range: ClosedRange<Int64>, _ target: Target) throws(SectionFault) {
    guard range.lowerBound >= TableLoader.keys.lowerBound, range.upperBound <= TableLoader.keys.upperBound else {
      throw SectionFault("It has keys that no object can have.")
    }
    var last = range.lowerBound - 1
    for index in 0..<target.count {
      let offset =
        numbers.width == 4
        ? UInt64(UInt32(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)))
        : UInt64(littleEndian: numbers.offsets.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
      guard offset <= UInt64(range.upperBound - range.lowerBound) else { throw SectionFault("It has keys beyond its last.") }
      let key = range.lowerBound + Int64(offset)
      if key <= last { throw SectionFault("Its keys are not in order.") }
      last = key
      target.store(UInt64(bitPattern: key), index, at: 0)
    }
    if last != range.upperBound || target.base.load(as: Int64.self) != range.lowerBound {
      throw SectionFault("Its keys are not those that the directory says.")
    }
  }

  /// Says of all rows at once that they have values in the columns in which every row has one.
  private func markFull(_ columns: [Column?], _ target: Target) {
    for block in stride(from: 0, to: columns.count, by: 64) {
      var bits: UInt64 = 0
      for slot in block..<min(block + 64, columns.count) {
        if let column = columns[slot], column.presence == nil { bits |= 1 << UInt64(slot - block) }
      }
      let offset = RowLayout.presenceOffset(block)
      if bits != 0 { for index in 0..<target.count { target.store(bits, index, at: offset) } }
    }
  }

  private func fill(_ column: Column, _ slot: Int, _ target: Target, _ place: inout Int) throws(SectionFault) {
    if column.presence != nil { for index in 0..<target.count where isSet(column.presence, index) { target.mark(index, slot) } }
    let offset = RowLayout.cellOffset(slot)
    switch layout.columns[slot] {
    case .toOne: try fill(column.numbers, presence: column.presence, in: TableLoader.keys, target, at: offset)
    case .attribute(let type):
      switch type.cellKind {
      case .integer, .key:
        try fill(column.numbers, presence: column.presence, in: type.integerRange ?? .min ... .max, target, at: offset)
      case .real: try fillReals(column, target, at: offset)
      case .bytes: try fillBytes(column, slot, type, target, &place)
      }
    }
  }

  /// Stores numbers of rows that have one, and checks that they are in a range.
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

  private func fillBytes(_ column: Column, _ slot: Int, _ type: AttributeType, _ target: Target, _ place: inout Int) throws(SectionFault) {
    if let source = column.bytes.baseAddress { (target.base + place).copyMemory(from: source, byteCount: column.bytes.count) }
    let isText = type == .string || type == .uri || type == .objectID || type == .decimal
    if isText && !UTF8Check.isValid(column.bytes) { throw SectionFault("The text of \(entity.slots[slot].name) is no UTF-8.") }
    let offset = RowLayout.cellOffset(slot)
    var start = 0
    for index in 0..<target.count where isSet(column.presence, index) {
      let length = length(column.numbers, index)
      let bytes = UnsafeRawBufferPointer(rebasing: column.bytes[start..<start + length])
      // The whole column is text; a value is, unless it begins within a character.
      if isText, let first = bytes.first, first & 0xC0 == 0x80 { throw SectionFault("A text begins within a character.") }
      var cell = UInt64(place + start - index * target.stride) | UInt64(length) << 32
      if column.external != nil && isSet(column.external, index) {
        if length != 16 { throw SectionFault("A value names no file.") }
        cell |= RowLayout.externalBit
      } else if !isText || type == .objectID || type == .decimal {
        try check(bytes, type, slot)
      }
      target.store(cell, index, at: offset)
      start += length
    }
    place += column.bytes.count
  }

  private func check(_ bytes: UnsafeRawBufferPointer, _ type: AttributeType, _ slot: Int) throws(SectionFault) {
    let isRight =
      switch type {
      case .uuid: bytes.count == 16
      case .decimal: NumberText.decimal(bytes).map { $0.description.utf8.elementsEqual(bytes) } ?? false
      case .objectID: ManagedObjectID(uriRepresentation: String(decoding: bytes, as: UTF8.self)) != nil
      default: true
      }
    if !isRight { throw SectionFault("A value of \(entity.slots[slot].name) is none of its type.") }
  }
}
