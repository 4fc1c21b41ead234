import CHoldfastLibXML2

/// The names of elements and XML attributes in the parser's dictionary. The dictionary contains each name once, so names are compared by
/// address.
struct XMLNames {
  typealias Name = UnsafePointer<xmlChar>

  let database, databaseInfo, version, uuid, nextObjectID, metadata, object, attribute, relationship: Name
  let type, id, name, destination, idrefs: Name

  /// Nil if there isn't enough memory.
  init?(_ parser: xmlParserCtxtPtr) {
    func kept(_ text: StaticString) -> Name? { xmlDictLookup(parser.pointee.dict, text.utf8Start, Int32(text.utf8CodeUnitCount)) }
    guard let database = kept("database"), let databaseInfo = kept("databaseInfo"), let version = kept("version"), let uuid = kept("UUID"),
      let nextObjectID = kept("nextObjectID"), let metadata = kept("metadata"), let object = kept("object"),
      let attribute = kept("attribute"), let relationship = kept("relationship"), let type = kept("type"), let id = kept("id"),
      let name = kept("name"), let destination = kept("destination"), let idrefs = kept("idrefs")
    else { return nil }
    (self.database, self.databaseInfo, self.version, self.uuid) = (database, databaseInfo, version, uuid)
    (self.nextObjectID, self.metadata, self.object, self.attribute) = (nextObjectID, metadata, object, attribute)
    (self.relationship, self.type, self.id, self.name) = (relationship, type, id, name)
    (self.destination, self.idrefs) = (destination, idrefs)
  }
}
