import CHoldfastYajl
import HoldfastAtomicStore
import HoldfastStore

/// Runs yajl over a file, and checks what yajl doesn't: UTF-8, pairs of escaped surrogates, and the digest.
///
/// It uses only yajl's streaming callbacks. Numbers arrive as text. A callback that returns 0 stops the parser. The position that
/// yajl reports is the end of the text of the current event, or of the error.
struct JSONParser {
  private let document: JSONDocumentReader
  private let options: JSONStoreOptions
  private let readsLines: Bool

  init(_ document: JSONDocumentReader, options: JSONStoreOptions) {
    self.document = document
    self.options = options
    // A line has objects and arrays down to the fifth level.
    readsLines = WrittenLines.areRead && options.maximumNesting >= 5
  }

  /// Parses the file until the document needs no more of it.
  ///
  /// - Returns: The number of bytes that yajl didn't receive.
  @discardableResult func parse(_ reader: FileReader) throws -> Int {
    // The parser keeps a pointer to the callbacks, not a copy.
    let callbacks = UnsafeMutablePointer<yajl_callbacks>.allocate(capacity: 1)
    callbacks.initialize(to: JSONParser.callbacks())
    defer { callbacks.deallocate() }
    document.rowsBeginOrEnd = { JSONParser.setCallbacks(callbacks, inRow: $0) }
    defer { document.rowsBeginOrEnd = nil }
    return try withExtendedLifetime(document) {
      guard let handle = yajl_alloc(callbacks, nil, Unmanaged.passUnretained(document).toOpaque()) else {
        throw StoreError(.inputOutput, operation: "open the store", path: document.errors.path, reason: "There isn't enough memory.")
      }
      defer { yajl_free(handle) }
      return try parse(reader, handle)
    }
  }

  private func parse(_ reader: FileReader, _ handle: yajl_handle) throws -> Int {
    var bytes = JSONByteCheck()
    var seal = TextSeal.Check(JSONFormat.seal, byteCount: Int(reader.byteCount))
    var feed = JSONFeed(handle)
    while let chunk = try reader.next() {
      // Small pieces stay in the processor's cache while several passes read them.
      for start in stride(from: 0, to: chunk.count, by: JSONFeed.pieceByteCount) {
        let piece = UnsafeRawBufferPointer(rebasing: chunk[start..<min(start + JSONFeed.pieceByteCount, chunk.count)])
        seal.update(piece)
        // The parser never receives invalid bytes.
        let count = bytes.acceptedCount(piece)
        let isWrong = count < piece.count
        document.proceeded(to: Double(feed.offset + count) / Double(reader.byteCount))
        let status = try take(UnsafeRawBufferPointer(rebasing: piece[..<count]), isLast: isWrong, &feed)
        if status != yajl_status_ok { try fail(handle, at: feed.offset) }
        if document.isSatisfied { return feed.skipped }
        if isWrong { throw document.damaged("The file contains invalid UTF-8 or an unpaired surrogate escape.", at: feed.offset + 1) }
      }
    }
    var status = feed.take(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true) { document.takeHeard() }
    if status == yajl_status_ok { status = yajl_complete_parse(handle) }
    if status != yajl_status_ok || !bytes.isComplete || !document.isComplete { try fail(handle, at: feed.offset) }
    if seal.finding != .right {
      if !options.wholeFile.allowsUnverified { throw document.errors.unverified() }
      document.noteUnverified()
    }
    return feed.skipped
  }

  /// Passes lines of objects to the row reader, and everything else to yajl.
  private func take(_ piece: UnsafeRawBufferPointer, isLast: Bool, _ feed: inout JSONFeed) throws -> yajl_status {
    var start = 0
    // Also once for an empty piece, because the feed may hold bytes.
    repeat {
      let next = readsLines ? WrittenLines.start(in: piece, from: start) ?? piece.count : piece.count
      let part = UnsafeRawBufferPointer(rebasing: piece[start..<next])
      let status = feed.take(part, isLast: isLast && next == piece.count) { document.takeHeard() }
      if status != yajl_status_ok { return status }
      start = next
      // yajl has seen the comma or bracket before the lines, and sees an object behind them.
      guard next < piece.count, feed.isEmpty, document.isBetweenRows, WrittenLines.precede(piece, next) else { continue }
      let lines = UnsafeRawBufferPointer(rebasing: piece[next...])
      try document.withRows { rows in
        let count = try rows.takeLines(lines)
        feed.skip(count)
        start += count
      }
    } while start < piece.count
    return yajl_status_ok
  }

  private func fail(_ handle: yajl_handle, at offset: Int) throws {
    if document.isSatisfied { return }
    if let failure = document.failure { throw failure }
    throw document.damaged("The file isn't valid JSON or is truncated.", at: offset + Int(yajl_get_bytes_consumed(handle)))
  }
}

/// Passes pieces to yajl and keeps the total time linear.
///
/// If a string or number spans several pieces, yajl scans it from its beginning for each piece. When a piece of the usual size produces no
/// event, the feed gathers the following pieces and doubles their size. Smaller pieces end behind an object, or where a larger one begins.
struct JSONFeed {
  static let pieceByteCount = 1 << 16

  private let handle: yajl_handle
  private var held: [UInt8] = []
  private var wanted = JSONFeed.pieceByteCount
  /// The number of bytes that yajl has parsed without an error.
  private(set) var offset = 0

  init(_ handle: yajl_handle) { self.handle = handle }

  /// Whether yajl has received all bytes.
  var isEmpty: Bool { held.isEmpty }

  /// The number of bytes that yajl didn't receive.
  private(set) var skipped = 0

  /// Counts bytes that yajl doesn't receive.
  mutating func skip(_ count: Int) {
    offset += count
    skipped += count
  }

  /// - Parameters:
  ///   - isLast: Whether to pass on everything that was gathered.
  ///   - heard: Returns whether an event arrived since the last call.
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
    if heard() {
      wanted = JSONFeed.pieceByteCount
    } else if bytes.count >= wanted {
      wanted = 2 * bytes.count
    }
    return status
  }
}

/// Sends an event to the document reader behind yajl's context pointer.
@inline(__always) private func tell(_ context: UnsafeMutableRawPointer?, _ body: (JSONDocumentReader) throws -> Void) -> Int32 {
  // `parse(_:)` keeps the reader alive.
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

/// Sends an event directly to the row reader. See ``tell(_:_:)``.
@inline(__always) private func tellRows(_ context: UnsafeMutableRawPointer?, _ body: (JSONRowReader) throws -> Void) -> Int32 {
  tell(context) { try $0.withRows(body) }
}

extension JSONParser {
  /// Sends values and names inside a row, which make up most of a file, directly to the row reader.
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
