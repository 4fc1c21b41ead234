import CSVStore
import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance

@testable import HoldfastAtomicStore

/// A whole-file format that writes the same generation and lineage with each save.
struct ConstantFormat<Format: DocumentFormat>: StoreFileFormat {
  let base: DocumentFile<Format>

  var storeType: String { base.storeType }
  var keySpace: KeySpace { base.keySpace }
  func read(_ reader: FileReader, into loader: TableLoader) throws { try base.read(reader, into: loader) }
  func open(_ reader: FileReader, model: ManagedObjectModel, path: String) throws -> (any PagedStoreFile)? {
    try base.open(reader, model: model, path: path)
  }
  func readHeader(_ reader: FileReader) throws -> StoreFileHeader { try base.readHeader(reader) }
  func readModel(_ reader: FileReader) throws -> ManagedObjectModel? { try base.readModel(reader) }

  func write(_ image: StoreImage, to file: FileReplacement, after saved: SavedFile?) throws -> [FilePart] {
    var image = image
    (image.header.generation, image.header.lineage) = (1, Array(repeating: 1, count: 16))
    return try base.write(image, to: file, after: saved)
  }
}

extension WholeFileHarness {
  /// The example of a document format, with the same generation in each file.
  static let constant = WholeFileHarness { path, isReadOnly, wholeFile in
    var options = wholeFile
    options.file.isReadOnly = isReadOnly
    let format = ConstantFormat(base: DocumentFile(CSVFormat(), path, options))
    return StoreDescription(format: format, at: path, options: options)
  }
}

/// A file system on which all files of the same size appear to be the same file.
struct SizesOnlyFileSystem: ForwardingFileSystem {
  let base: any StoreFileSystem

  func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus { onlySize(try base.status(of: file)) }
  func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    onlySize(try base.status(of: name, in: directory))
  }

  private func onlySize(_ status: StoreFileStatus) -> StoreFileStatus {
    var status = status
    status.identity = FileIdentity(device: 1, inode: 1, size: status.identity.size, modified: 0, changed: 0)
    return status
  }
}
