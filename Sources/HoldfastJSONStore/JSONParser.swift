import CYajl
import HoldfastAtomicStore
import HoldfastStore

/// Drives yajl over a file and checks what yajl does not: that the bytes are UTF-8, that escaped surrogates come in pairs, and
/// that the file is as it was written.
///
/// yajl's own pitfalls are met here: only its streaming callbacks are used; numbers arrive as text; a callback that refuses
/// stops it; the position that it tells is that behind the text of the event of which it tells, or of the error.
struct JSONParser {
  private let document: JSONDocumentReader
  private let options: JSONStore.Options

  init(_ document: JSONDocumentReader, options: JSONStore.Options) {
    self.document = document
    self.options = options
  }

  /// Parses a whole file, or as much of it as the document wants.
  func parse(_ reader: FileReader) throws {
    // The parser keeps the place of its callbacks, not a copy of them.
    let callbacks = UnsafeMutablePointer<yajl_callbacks>.allocate(capacity: 1)
    callbacks.initialize(to: JSONParser.callbacks())
    defer { callbacks.deallocate() }
    document.rowsBeginOrEnd = { JSONParser.setCallbacks(callbacks, inRow: $0) }
    defer { document.rowsBeginOrEnd = nil }
    try withExtendedLifetime(document) {
      guard let handle = yajl_alloc(callbacks, nil, Unmanaged.passUnretained(document).toOpaque()) else {
        throw StoreError(.inputOutput, operation: "open the store", path: document.errors.path, reason: "There is no memory for a parser.")
      }
      defer { yajl_free(handle) }
      try parse(reader, handle)
    }
  }

  private func parse(_ reader: FileReader, _ handle: yajl_handle) throws {
    var bytes = JSONByteCheck()
    var seal = TextSeal.Check(JSONFormat.seal, byteCount: Int(reader.byteCount))
    var feed = JSONFeed(handle)
    document.parser = handle
    defer { document.parser = nil }
    while let chunk = try reader.next() {
      // In pieces that stay in the processor's cache while they are gone over several times.
      for start in stride(from: 0, to: chunk.count, by: JSONFeed.pieceByteCount) {
        let piece = UnsafeRawBufferPointer(rebasing: chunk[start..<min(start + JSONFeed.pieceByteCount, chunk.count)])
        seal.update(piece)
        document.runs?.update(piece)
        // The parser never sees what is wrong.
        let count = bytes.acceptedCount(piece)
        let isWrong = count < piece.count
        document.proceeded(to: Double(feed.offset + count) / Double(reader.byteCount))
        document.isAt(feed.offset)
        let status = feed.take(UnsafeRawBufferPointer(rebasing: piece[..<count]), isLast: isWrong) { document.takeHeard() }
        if status != yajl_status_ok { try fail(handle, status, at: feed.offset) }
        if document.isSatisfied { return }
        if isWrong { throw document.damaged("It is not valid UTF-8, or has an escape of half a character.", at: feed.offset + 1) }
      }
    }
    var status = feed.take(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true) { document.takeHeard() }
    if status == yajl_status_ok { status = yajl_complete_parse(handle) }
    if status != yajl_status_ok || !bytes.isComplete || !document.isComplete { try fail(handle, status, at: feed.offset) }
    if seal.finding == .right {
      document.takeRuns()
    } else if !options.wholeFile.allowsUnverified {
      throw document.errors.unverified()
    }
  }

  private func fail(_ handle: yajl_handle, _ status: yajl_status, at offset: Int) throws {
    if document.isSatisfied { return }
    if let failure = document.failure { throw failure }
    throw document.damaged("It is not JSON, or ends too soon.", at: offset + Int(yajl_get_bytes_consumed(handle)))
  }
}

/// Hands pieces to yajl, which goes over a text or number that lies in several pieces from its beginning for each of them: when
/// nothing was heard of a piece, pieces are gathered and grow, so that a long text costs as much as its length and not its
/// square.
struct JSONFeed {
  static let pieceByteCount = 1 << 16

  private let handle: yajl_handle
  private var held: [UInt8] = []
  private var wanted = JSONFeed.pieceByteCount
  /// How many bytes were handed over before the last piece.
  private(set) var offset = 0

  init(_ handle: yajl_handle) { self.handle = handle }

  /// - Parameters:
  ///   - isLast: whether everything has to be handed over.
  ///   - heard: whether anything was heard of since the last question.
  mutating func take(_ piece: UnsafeRawBufferPointer, isLast: Bool, heard: () -> Bool) -> yajl_status {
    if held.isEmpty && wanted == JSONFeed.pieceByteCount { return parse(piece, heard) }
    held += piece
    guard isLast || held.count >= wanted else { return yajl_status_ok }
    let gathered = held
    held.removeAll(keepingCapacity: true)
    return gathered.withUnsafeBytes { parse($0, heard) }
  }

  private mutating func parse(_ bytes: UnsafeRawBufferPointer, _ heard: () -> Bool) -> yajl_status {
    if bytes.isEmpty { return yajl_status_ok }
    let status = yajl_parse(handle, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    if status == yajl_status_ok { offset += bytes.count }
    wanted = heard() ? JSONFeed.pieceByteCount : max(2 * bytes.count, 2 * wanted)
    return status
  }
}

/// Tells an event to the document behind the pointer that yajl hands back.
@inline(__always) private func tell(_ context: UnsafeMutableRawPointer?, _ body: (JSONDocumentReader) throws -> Void) -> Int32 {
  // The pointer is that of the reader which the parser keeps alive.
  let reader = Unmanaged<JSONDocumentReader>.fromOpaque(context!)
  return reader._withUnsafeGuaranteedRef { reader in
    reader.hasHeard = true
    do {
      try body(reader)
      return 1
    } catch {
      reader.failure = error
      return 0
    }
  }
}

/// As ``tell(_:_:)``, what reads objects of the model.
@inline(__always) private func tellRows(_ context: UnsafeMutableRawPointer?, _ body: (JSONRowReader) throws -> Void) -> Int32 {
  tell(context) { try $0.withRows(body) }
}

extension JSONParser {
  /// Values and names in an object of the model, which are most of a file, go straight to what reads those objects.
  fileprivate static func setCallbacks(_ callbacks: UnsafeMutablePointer<yajl_callbacks>, inRow: Bool) {
    if !inRow {
      callbacks.pointee = JSONParser.callbacks()
      return
    }
    callbacks.pointee.yajl_null = { tellRows($0) { try $0.null() } }
    callbacks.pointee.yajl_boolean = { context, value in tellRows(context) { try $0.boolean(value != 0) } }
    callbacks.pointee.yajl_number = { context, text, count in
      tellRows(context) { try $0.number(UnsafeRawBufferPointer(start: text, count: count)) }
    }
    callbacks.pointee.yajl_string = { context, text, count in
      tellRows(context) { try $0.string(UnsafeRawBufferPointer(start: text, count: count)) }
    }
    callbacks.pointee.yajl_map_key = { context, text, count in
      tellRows(context) { try $0.name(UnsafeRawBufferPointer(start: text, count: count)) }
    }
  }

  fileprivate static func callbacks() -> yajl_callbacks {
    yajl_callbacks(
      yajl_null: { tell($0) { try $0.null() } },
      yajl_boolean: { context, value in tell(context) { try $0.boolean(value != 0) } },
      yajl_integer: nil,
      yajl_double: nil,
      yajl_number: { context, text, count in tell(context) { try $0.number(UnsafeRawBufferPointer(start: text, count: count)) } },
      yajl_string: { context, text, count in tell(context) { try $0.string(UnsafeRawBufferPointer(start: text, count: count)) } },
      yajl_start_map: { tell($0) { try $0.beginObject() } },
      yajl_map_key: { context, text, count in tell(context) { try $0.name(UnsafeRawBufferPointer(start: text, count: count)) } },
      yajl_end_map: { tell($0) { try $0.endObject() } },
      yajl_start_array: { tell($0) { try $0.beginArray() } },
      yajl_end_array: { tell($0) { try $0.endArray() } })
  }
}
