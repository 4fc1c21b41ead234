import CHoldfastLibXML2
import HoldfastAtomicStore
import HoldfastStore

/// Provides libxml2 with the bytes of a file.
final class XMLFeed {
  private let reader: FileReader
  private let document: XMLDocumentReader
  private var seal: TextSeal.Check
  /// The unread rest of the last piece; valid until the next piece is read.
  private var piece: UnsafeRawBufferPointer
  private var offset = 0
  /// The number of brackets at the end of the former piece that libxml2 hasn't received.
  private var heldBrackets = 0
  /// The error that occurred while reading the file.
  private(set) var failure: (any Error)?
  private var tag = LongTag()
  /// Passes objects on instead of libxml2.
  private var objects: WrittenObjects

  /// Reads the first piece of the file and checks the prolog.
  init(_ reader: FileReader, _ document: XMLDocumentReader) throws {
    self.reader = reader
    self.document = document
    seal = TextSeal.Check(XMLFormat.seal, byteCount: Int(reader.byteCount))
    guard let first = try reader.next() else { throw document.errors.notAStore() }
    seal.update(first)
    let prolog = try XMLProlog.check(UnsafeRawBufferPointer(rebasing: first.prefix(XMLProlog.maximumByteCount)), document.errors)
    document.hasDocumentType = prolog.hasDocumentType
    objects = WrittenObjects(document, root: prolog.root - prolog.hidden)
    piece = UnsafeRawBufferPointer(rebasing: first[prolog.hidden...])
    offset = first.count
  }

  /// Whether libxml2 has read all bytes.
  var isAtEnd: Bool { piece.isEmpty && heldBrackets == 0 && offset == Int(reader.byteCount) }

  /// The result of checking the digest, once all bytes were read.
  var finding: TextSeal.Finding { seal.finding }

  /// The number of bytes that libxml2 didn't receive.
  var skipped: Int { objects.skipped }

  static let read: xmlInputReadCallback = { context, buffer, count in
    guard let context, let buffer else { return -1 }
    return Unmanaged<XMLFeed>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.read(UnsafeMutableRawPointer(buffer), Int(count)) }
  }

  /// Copies up to `most` bytes and returns their number: 0 at the end, -1 if the file can't be read.
  private func read(_ buffer: UnsafeMutableRawPointer, _ most: Int) -> Int32 {
    do { try advance() } catch {
      failure = error
      return -1
    }
    if piece.isEmpty && heldBrackets == 0 { return 0 }
    if let padding = objects.padding(in: buffer, most) { return Int32(padding) }
    document.proceeded(to: Double(offset) / Double(max(reader.byteCount, 1)))
    do { piece = UnsafeRawBufferPointer(rebasing: piece[try objects.take(piece)...]) } catch {
      failure = error
      return -1
    }
    let brackets = min(heldBrackets, most)
    buffer.initializeMemory(as: UInt8.self, repeating: XMLFeed.bracket, count: brackets)
    heldBrackets -= brackets
    let count = objects.count(of: piece, atMost: XMLFeed.count(of: piece, atMost: most - brackets))
    if let source = piece.baseAddress { (buffer + brackets).copyMemory(from: source, byteCount: count) }
    tag.update(UnsafeRawBufferPointer(start: buffer, count: brackets + count))
    guard tag.attributeCount <= LongTag.mostAttributes else {
      failure = document.errors.limit("A tag has more than \(LongTag.mostAttributes) attributes.")
      return -1
    }
    piece = UnsafeRawBufferPointer(rebasing: piece[count...])
    return Int32(brackets + count)
  }

  /// Reads the next piece if the last one has no bytes left, or only brackets that ``count(of:atMost:)`` has left.
  private func advance() throws {
    while piece.count <= XMLFeed.mostBrackets, piece.allSatisfy({ $0 == XMLFeed.bracket }) {
      heldBrackets += piece.count
      piece = UnsafeRawBufferPointer(start: nil, count: 0)
      guard let next = try reader.next() else { return }
      seal.update(next)
      offset += next.count
      piece = next
    }
  }

  private static let bracket = UInt8(ascii: "]")
  private static let mostBrackets = 2

  /// The number of bytes that libxml2 gets. It overlooks "]]>" in a text, which is an error, if its bytes end inside it. So they don't end
  /// with a bracket that may belong to it.
  private static func count(of bytes: UnsafeRawBufferPointer, atMost most: Int) -> Int {
    let limit = min(most, bytes.count)
    var count = limit
    while count > 0, limit - count < mostBrackets, bytes[count - 1] == bracket { count -= 1 }
    return count > 0 ? count : limit
  }
}
